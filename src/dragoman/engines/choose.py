"""Which engine to take, and the parts that have to be installed for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from dragoman.checkpoint.ct2 import suits_ct2
from dragoman.config import Config
from dragoman.engines.engine import Engine, OpenEngine
from dragoman.errors import ConfigError, MissingPartError
from dragoman.tokens.subwords import Subwords

EngineName = Literal["auto", "torch", "ct2"]
PrecisionName = Literal["auto", "float32", "int8"]


def load_engine(
    models: Sequence[tuple[Path, Config]],
    subwords: Subwords,
    *,
    engine: EngineName,
    precision: PrecisionName,
    device: str,
    threads: int | None,
) -> Engine:
    """The engine with the weights of these run folders, whose settings are beside them."""
    for name, value, choices in (("engine", engine, EngineName), ("precision", precision, PrecisionName)):
        if value not in get_args(choices):
            raise ConfigError(f'{name} "{value}" is not a choice', hint=f"use one of {', '.join(get_args(choices))}")
    if threads is not None and threads < 1:
        raise ConfigError(f"threads={threads} is below 1", hint="give a whole number above 0")
    if len(models) > 1 and (engine == "ct2" or precision == "int8"):
        raise ConfigError("several models are averaged by the torch engine, in float32", hint="use --engine torch")
    folder, config = models[0]
    if engine == "auto":
        engine = "ct2" if len(models) == 1 and _suits_ct2(config, device) else "torch"
    if engine == "torch":
        if precision == "int8":
            raise ConfigError("the torch engine has no int8", hint="use --engine ct2, or --precision float32")
        return load_torch(models, device, threads)
    return _load_ct2(folder, config, subwords, precision, device, threads)


def _suits_ct2(config: Config, device: str) -> bool:
    """Whether CTranslate2 is there, can compute this model, and is what suits the device best."""
    if importlib.util.find_spec("ctranslate2") is None:
        return False
    if importlib.util.find_spec("torch") is None:
        return True
    import ctranslate2

    has_cuda = device == "cuda" or (device == "auto" and ctranslate2.get_cuda_device_count() > 0)
    return not has_cuda and suits_ct2(config.model)


def load_torch(models: Sequence[tuple[Path, Config]], device: str, threads: int | None = None) -> OpenEngine:
    """Our own engine, of one model or several."""
    try:
        import torch

        from dragoman.engines.torch_engine import load_torch_engine
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingPartError(
            "sampling, attention, alignments and the torch engine need torch", hint="pip install 'dragoman[train]'"
        ) from None
    if threads is not None:
        torch.set_num_threads(threads)
    return load_torch_engine([(folder, config.model) for folder, config in models], device)


def _load_ct2(
    folder: Path, config: Config, subwords: Subwords, precision: PrecisionName, device: str, threads: int | None
) -> Engine:
    try:
        import ctranslate2  # noqa: F401
    except ModuleNotFoundError:
        raise MissingPartError("the engine ct2 needs CTranslate2", hint="pip install ctranslate2") from None
    from dragoman.engines.ct2_engine import load_ct2_engine

    if device == "cuda":
        raise ConfigError("the engine ct2 runs on the processor here", hint="use --engine torch, or --device cpu")
    return load_ct2_engine(
        folder, config, subwords, precision="int8" if precision == "auto" else precision, threads=threads
    )
