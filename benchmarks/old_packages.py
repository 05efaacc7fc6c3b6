"""What packages older than Python 3.11 and torch 2.13 need to be imported and run unchanged."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

# What JoeyNMT imports and training does not use: plots, other subwords, a log that nobody reads.
NOT_FOR_JOEYNMT = (
    "matplotlib", "matplotlib.backends", "matplotlib.backends.backend_pdf", "matplotlib.figure", "matplotlib.pyplot",
    "subword_nmt", "torch.utils.tensorboard",
)  # fmt: skip


def leave_out(*modules: str) -> None:
    """Puts stand-ins for modules that a peer imports but does not use in training, and that are not installed."""
    for module in modules:
        sys.modules[module] = MagicMock(name=module)


@contextmanager
def hashable_dataclasses() -> Iterator[None]:
    """Gives dataclasses a hash: Python 3.11 refuses defaults without one, which fairseq and hydra have."""
    dataclass = dataclasses.dataclass

    def hashable(cls: type | None = None, **options: Any) -> Any:
        def make(cls: type) -> type:
            made = dataclass(cls, **options)
            if made.__hash__ is None:
                made.__hash__ = object.__hash__
            return made

        return make if cls is None else make(cls)

    dataclasses.dataclass = hashable
    try:
        yield
    finally:
        dataclasses.dataclass = dataclass
