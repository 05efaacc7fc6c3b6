"""`dragoman evaluate`: the numbers of sacreBLEU with their signatures, for people and for machines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from sacrebleu import BLEU, CHRF, TER
from small_run import Corpus

from dragoman.cli.main import run as run_command
from dragoman.translator import load

PARTS = {"ours", "theirs", "difference", "low", "high", "p_value", "signature"}


def evaluate(run: Path, corpus: Corpus, *flags: object) -> list[str]:
    files = ["--src", str(corpus.valid_src), "--ref", str(corpus.valid_tgt)]
    return ["evaluate", "--model", str(run), *files, "--threads", "1", "--device", "cpu", *map(str, flags)]


def test_json(run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(evaluate(run, corpus, "--json")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    result = json.loads(out)
    assert list(result) == ["bleu", "chrf", "ter", "sentences", "loss", "perplexity"]
    translator = load(run, precision="float32", device="cpu", threads=1)
    sources = corpus.valid_src.read_text(encoding="utf-8").splitlines()
    references = corpus.valid_tgt.read_text(encoding="utf-8").splitlines()
    hypotheses = [translation.text for translation in translator.translate(sources)]
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        assert result[name].keys() == {"score", "signature"}
        assert result[name]["score"] == metric.corpus_score(hypotheses, [references]).score
        assert result[name]["signature"] == str(metric.get_signature())
    assert result["loss"] == translator.loss(sources, references)
    assert result["perplexity"] == math.exp(result["loss"])
    assert result["sentences"] == len(sources)


def test_table(run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(evaluate(run, corpus, "--json"))
    result = json.loads(capsys.readouterr().out)
    assert run_command(evaluate(run, corpus)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["BLEU", "chrF", "TER", "loss", "perplexity", "sentences"]
    for line, name in zip(lines[:3], ("bleu", "chrf", "ter"), strict=True):
        assert line.split() == [line.split()[0], f"{result[name]['score']:.2f}", result[name]["signature"]]
    assert lines[3].split()[1] == f"{result['loss']:.4f}"
    assert lines[5].split()[1] == str(result["sentences"])


def test_beam_and_length_penalty_reach_the_search(
    run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(evaluate(run, corpus, "--json", "--beam", 1, "--length-penalty", 0))
    result = json.loads(capsys.readouterr().out)
    translator = load(run, precision="float32", device="cpu", threads=1)
    sources = corpus.valid_src.read_text(encoding="utf-8").splitlines()
    references = corpus.valid_tgt.read_text(encoding="utf-8").splitlines()
    greedy = [translation.text for translation in translator.translate(sources, beam=1)]
    assert result["chrf"]["score"] == CHRF().corpus_score(greedy, [references]).score


def test_against_a_file_of_translations(run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """The references themselves are the best system there can be."""
    other = str(corpus.valid_tgt)
    assert run_command(evaluate(run, corpus, "--json", "--against", other)) == 0
    against = json.loads(capsys.readouterr().out)["against"]
    assert list(against) == ["other", "bleu", "chrf", "ter", "sentences"]
    assert against["other"] == other
    for name in ("bleu", "chrf", "ter"):
        assert against[name].keys() == PARTS
        assert "bs:1000|seed:12345" in against[name]["signature"]
    assert against["bleu"]["theirs"] == pytest.approx(100)
    assert against["chrf"]["difference"] < 0
    assert against["ter"]["theirs"] == 0


def test_against_itself_nothing_differs(run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(evaluate(run, corpus, "--against", run)) == 0
    text = capsys.readouterr().out
    assert f"against {run}: paired bootstrap" in text
    assert text.count("= +0.00   [+0.00, +0.00]   p = 1.000") == 3
