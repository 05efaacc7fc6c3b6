"""The corpus, the trained run and the forks of tests/e2e, for the tests of each command's output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from small_run import Corpus, Forks, shared


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    forks = shared(tmp_path_factory.getbasetemp())[0]
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return shared(tmp_path_factory.getbasetemp())[1]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run; not to be changed."""
    return shared(tmp_path_factory.getbasetemp())[2]
