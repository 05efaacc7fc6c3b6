"""A trained model for the tests of engines, and sentences for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import Corpus, Forks, small

from dragoman.translator import Translator, load


@pytest.fixture(scope="session")
def folder(forks: Forks, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned enough to answer differently to different sentences."""
    folder = tmp_path_factory.mktemp("engines") / "run"
    settings = small(
        400,
        "train.optimizer='muon'",
        "train.lr=0.01",
        "train.schedule='linear'",
        "train.valid_every=400",
        "train.seed=2",
    )
    ended = forks.run(["train", *corpus.flags(), "--out", str(folder), *settings])
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture(scope="session")
def ours(folder: Path) -> Translator:
    return load(folder, engine="torch")


@pytest.fixture(scope="session")
def sentences(corpus: Corpus) -> list[str]:
    """Some that the model knows, some that it makes little of."""
    lines = corpus.src.read_text(encoding="utf-8").splitlines()[:60]
    return [*lines, *(line[::-1] for line in lines[:20]), "", "x", " ".join(lines[:4])]
