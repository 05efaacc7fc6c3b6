"""Which languages a model has, and which one a text is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.serve.languages import Detector, languages_of, name_of, parse_model
from dragoman.text.corpus import TextConfig


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("runs/en-de", (None, None, Path("runs/en-de"))),
        ("en-de=runs/a", ("en", "de", Path("runs/a"))),
        ("pt-BR-zh-Hant=a=b", ("pt-BR", "zh-Hant", Path("a=b"))),
        ("EN-de=a", (None, None, Path("EN-de=a"))),
    ],
)
def test_languages_are_said_with_the_model(text: str, parsed: object) -> None:
    assert parse_model(text) == parsed


def test_languages_are_those_of_the_training_files() -> None:
    config = Config(text=TextConfig(src="data/train.en.gz", tgt="train.hsb", valid_src="a", valid_tgt="b"))
    assert languages_of(config, Path("run")) == ("en", "hsb")
    for src, tgt in (("train.src", "train.tgt"), ("train", "de")):
        config = Config(text=TextConfig(src=src, tgt=tgt, valid_src="a", valid_tgt="b"))
        with pytest.raises(ConfigError, match="languages of run are not known"):
            languages_of(config, Path("run"))


def test_languages_have_names() -> None:
    assert [name_of(code) for code in ("de", "pt-BR", "qqq")] == ["German", "Portuguese (BR)", "qqq"]


def test_only_the_given_languages_are_found() -> None:
    detector = Detector(["en", "pt-BR", "qqq"])
    ranked = detector.ranked("Onde fica a estação mais próxima?")
    assert [code for code, _ in ranked] == ["pt-BR", "en"]
    assert sum(sure for _, sure in ranked) == pytest.approx(100, abs=0.01)
    assert Detector(["qqq"]).ranked("Hello") == []
    assert len(detector.ranked("")) == 2
