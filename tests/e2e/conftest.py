"""A corpus, a trained run and processes to start commands in, shared by whole-command tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
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
