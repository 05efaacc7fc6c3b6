"""What preparing leaves in the run folder besides subwords and ids: the shortlist, as `dragoman shortlist` makes it."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dragoman.prepare
from dragoman.cli import main as cli
from dragoman.config import Config, make_config, to_toml
from dragoman.prepare import check_shortlist, prepare
from dragoman.tokens.shortlist import Shortlist, build_shortlist
from dragoman.tokens.subwords import Subwords

WORDS = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrs"]


class Notes:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)

    warn = note

    def about_shortlist(self) -> list[str]:
        return [text for text in self.said if "shortlist" in text]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"preparing does not call {name}")


def write_text(folder: Path) -> Config:
    """Words become their mirror images in capitals; the validation text is more of the same."""
    rng = random.Random(1)
    paths = {}
    for part, n in (("", 1500), ("valid_", 40)):
        sentences = [[rng.choice(WORDS) for _ in range(rng.randint(2, 6))] for _ in range(n)]
        for side, spell in (("src", str), ("tgt", lambda word: word[::-1].upper())):
            path = folder / f"{part}{side}"
            path.write_text("".join(" ".join(map(spell, words)) + "\n" for words in sentences), encoding="utf-8")
            paths[part + side] = str(path)
    return make_config({"text": paths, "tokens": {"vocab_size": 600}})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A vocabulary this small would all be common, so less is."""
    monkeypatch.setattr(dragoman.prepare, "build_shortlist", partial(build_shortlist, width=4, n_common=10))
    return write_text(tmp_path)


def prepared(config: Config, run: Path) -> Notes:
    notes = Notes()
    run.mkdir(exist_ok=True)
    prepare(config, run, notes)
    return notes


def test_the_shortlist_is_made_and_its_coverage_told(config: Config, tmp_path: Path) -> None:
    notes = prepared(config, tmp_path / "run")
    (told,) = notes.about_shortlist()
    assert told.startswith("the shortlist holds 100.0 % of the validation text's subwords, ")
    data, _ = prepare(config, tmp_path / "run", Notes())
    made = Shortlist.load(tmp_path / "run" / "shortlist.safetensors", data.subwords.vocab_size)
    n_ids = sum(len(made.ids(data.subwords.encode(pair.src))) for pair in data.valid) / len(data.valid)
    assert told.endswith(f", {n_ids:,.0f} of {data.subwords.vocab_size} for a sentence")
    assert n_ids < 40


def test_without_validation_text_it_is_made_unseen(config: Config, tmp_path: Path) -> None:
    text = {name: getattr(config.text, name) for name in ("src", "tgt")}
    notes = prepared(make_config({"text": text, "tokens": {"vocab_size": 600}}), tmp_path / "run")
    assert notes.about_shortlist() == []
    assert (tmp_path / "run" / "shortlist.safetensors").is_file()


def test_one_that_is_there_is_kept(config: Config, tmp_path: Path) -> None:
    prepared(config, tmp_path / "run")
    path = tmp_path / "run" / "shortlist.safetensors"
    path.write_bytes(b"made by hand")
    assert prepared(config, tmp_path / "run").about_shortlist() == []
    assert path.read_bytes() == b"made by hand"


def test_the_command_makes_what_training_makes_of_the_same_text(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, text = tmp_path / "run", config.text
    prepared(config, run)
    (run / "config.toml").write_text(to_toml(config), encoding="utf-8")
    path = run / "shortlist.safetensors"
    from_training = path.read_bytes()
    path.unlink()
    before = {path.name for path in run.iterdir()}
    assert cli.run(["shortlist", "--model", str(run), "--src", str(text.src), "--tgt", str(text.tgt)]) == 0
    assert path.read_bytes() == from_training
    assert {path.name for path in run.iterdir()} == before | {path.name}
    assert f"{path}: 10 subwords for any sentence, " in capsys.readouterr().err


def test_the_command_refuses_text_that_does_not_fit(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, text = tmp_path / "run", config.text
    prepared(config, run)
    (run / "config.toml").write_text(to_toml(config), encoding="utf-8")
    before = (run / "shortlist.safetensors").read_bytes()
    short = ["shortlist", "--model", str(run), "--src", str(text.src), "--tgt", str(text.valid_tgt)]
    assert cli.run(short) == 1
    assert capsys.readouterr().err.splitlines()[-2].startswith("error: ")
    assert cli.run(["shortlist", "--model", str(tmp_path), "--src", str(text.src), "--tgt", str(text.tgt)]) == 1
    assert "config.toml" in capsys.readouterr().err
    assert (run / "shortlist.safetensors").read_bytes() == before


def test_one_translation_that_is_a_loop_does_not_cost_the_shortlist(config: Config, tmp_path: Path) -> None:
    run = tmp_path / "run"
    prepared(config, run)
    subwords, path = Subwords.load(run / "subwords.model"), run / "shortlist.safetensors"
    sources, texts = (
        Path(str(name)).read_text().splitlines() * 5 for name in (config.text.valid_src, config.text.valid_tgt)
    )
    loop = "\N{SNOWMAN}" * 500
    check_shortlist(run, subwords, sources, [loop, *texts[1:]], Notes())
    assert path.is_file()
    notes = Notes()
    check_shortlist(run, subwords, sources, [loop] * 10 + texts[10:], notes)
    assert not path.exists()
    assert "no shortlist is kept" in notes.said[0]
