"""For all tests: one thread, so that sums have one order, and property tests that draw the same each time.

Also a corpus, a trained run and processes to start commands in, shared by the tests of whole commands.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from small_run import Corpus, Forks, shared

torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background, whose children would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("dragoman", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dragoman")


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
