"""What `attention` and `heads` write: pages, pictures, data and tables, by the ending of the file."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from matplotlib.image import imread
from small_run import Corpus

from dragoman.cli.main import run as run_command
from dragoman.explain.api import explain_json
from dragoman.explain.heads import heads_of, parse_heads, without_heads
from dragoman.text.lines import read_lines
from dragoman.translator import load

TEXT = "bade $kiki$ lomu"


def test_the_data_is_that_of_the_translator(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "a.json"
    assert run_command(["attention", "--model", str(run), TEXT, "--output", str(output)]) == 0
    told = json.loads(output.read_text(encoding="utf-8"))
    assert told == explain_json(load(run, engine="torch"), TEXT)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"{told['target']}\n{output}\n"
    assert run_command(["attention", "--model", str(run), TEXT, "--target", "tasu", "--output", str(output)]) == 0
    assert json.loads(output.read_text(encoding="utf-8"))["target"] == "tasu"


def test_a_picture_is_of_all_heads_or_of_one(run: Path, tmp_path: Path) -> None:
    every, one = tmp_path / "every.svg", tmp_path / "one.svg"
    view = ["--kind", "encoder", "--layer", "1", "--head", "2"]
    assert run_command(["attention", "--model", str(run), TEXT, "--kind", "encoder", "--output", str(every)]) == 0
    assert run_command(["attention", "--model", str(run), TEXT, *view, "--output", str(one)]) == 0
    n_images = [len(list(ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}image"))) for file in (every, one)]
    assert n_images == [2, 1]
    assert run_command(["attention", "--model", str(run), TEXT, *view, "--output", str(tmp_path / "one.PNG")]) == 0
    pixels = imread(tmp_path / "one.PNG", format="png")
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.02


def test_the_page_is_written_where_nothing_else_is_said(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["attention", "--model", str(run), TEXT]) == 0
    page = Path("attention.html").read_text(encoding="utf-8")
    given = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert given is not None
    data = json.loads(given[1])["data"]
    assert data["source"] == TEXT
    assert len(data["effects"]) == len(heads_of(load(run, engine="torch").config.model))


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["text", "--output", "a.pdf"], 2, "a.pdf ends in none of .html, .png, .svg, .json"),
        (["text", "--output", "no/such/a.png"], 1, "there is no folder no/such"),
        (["text", "--layer", "2"], 2, "--layer 2 is not in this model"),
        (["text", "--head", "0"], 2, "--head 0 is not in this model"),
        (["", "--output", "a.json"], 1, "there is no text to look at"),
        (["text", "--target", "", "--output", "a.json"], 1, "there is no text to look at"),
    ],
)
def test_mistakes_get_one_sentence(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["attention", "--model", str(run), *args]) == code
    assert capsys.readouterr().err.splitlines()[0] == f"error: {message}"
    assert list(tmp_path.iterdir()) == []


def test_heads_are_scored_by_switching_them_off(
    run: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--src", str(corpus.valid_src), "--tgt", str(corpus.valid_tgt)]
    output = tmp_path / "heads.png"
    assert run_command(["heads", "--model", str(run), *files, "--bleu", "--output", str(output), "--json"]) == 0
    written = capsys.readouterr()
    told = json.loads(written.out)
    assert "7 of 7 models scored" in written.err
    translator = load(run, engine="torch")
    sources, references = (list(read_lines(path)) for path in (corpus.valid_src, corpus.valid_tgt))
    assert told["loss"] == pytest.approx(translator.loss(sources, references))
    assert [change["head"] for change in told["changes"]] == [str(h) for h in heads_of(translator.config.model)]
    last = told["changes"][-1]
    without = without_heads(translator, parse_heads([last["head"]], translator.config.model))
    assert last["loss"] == pytest.approx(without.loss(sources, references) - told["loss"])
    assert min(imread(output).shape[:2]) > 200

    assert run_command(["heads", "--model", str(run), *files]) == 0
    table = capsys.readouterr().out
    assert f"loss {told['loss']:.4f}" in table
    assert re.search(rf"^cross 1 .* {re.escape(format(last['loss'], '+.4f'))}$", table, re.MULTILINE)
    assert "BLEU" not in table


def test_heads_refuses_files_of_different_lengths(
    run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["heads", "--model", str(run), "--src", str(corpus.src), "--tgt", str(corpus.valid_tgt)]) == 1
    assert "240 lines" in capsys.readouterr().err
