"""Dragoman: the Transformer of "Attention Is All You Need", from parallel text to a translator.

The data walks through the folders in this order; each stage knows only those before it:

    text         1  files -> clean sentence pairs
    tokens       2  text <-> ids
    batches      3  ids -> padded tensors
    model        4  tensors -> logits
    train        5  logits -> better weights
    checkpoint   6  weights <-> disk
    search       7  next-token scores -> hypotheses
    score        8  hypotheses -> numbers

    run.py          composer for training: wires 1-8 together (prepare.py: the text; distill.py: the text of
                    teachers; budget.py: what a time buys; session.py: the run while it trains; ending.py: what it
                    leaves; describe.py: its card)
    translator.py   composer for use: tokens + model + search -> Translation (engines: ours in torch, or CTranslate2)
    explain         a use of a trained model: what it looks at, as data, page and pictures
    serve           another: a translator over HTTP
    config.py       gathers the stages' settings
    errors.py       the exception tree
    memory.py       what the processes of the commands do about theirs
    cli             one small file per command

Importing this package loads no torch: the names below are fetched when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dragoman._version import __version__
from dragoman.errors import (
    ConfigError,
    DataError,
    DragomanError,
    MissingPartError,
    ModelError,
    TrainingError,
)

if TYPE_CHECKING:
    from dragoman.config import Config as Config
    from dragoman.model.config import ModelConfig as ModelConfig
    from dragoman.model.transformer import Transformer as Transformer
    from dragoman.search.step import Sampling as Sampling
    from dragoman.translator import Attention as Attention
    from dragoman.translator import Translation as Translation
    from dragoman.translator import Translator as Translator
    from dragoman.translator import load as load

_HOMES = {
    "Attention": "dragoman.translator",
    "Config": "dragoman.config",
    "ModelConfig": "dragoman.model.config",
    "Sampling": "dragoman.search.step",
    "Transformer": "dragoman.model.transformer",
    "Translation": "dragoman.translator",
    "Translator": "dragoman.translator",
    "load": "dragoman.translator",
}

__all__ = [
    "Attention",
    "Config",
    "ConfigError",
    "DataError",
    "DragomanError",
    "MissingPartError",
    "ModelConfig",
    "ModelError",
    "Sampling",
    "TrainingError",
    "Transformer",
    "Translation",
    "Translator",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingPartError(f"dragoman.{name} needs torch", hint="pip install 'dragoman[train]'") from None


def __dir__() -> list[str]:
    return __all__
