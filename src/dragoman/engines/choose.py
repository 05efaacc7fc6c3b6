"""Which engine to take, and the parts that have to be installed for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from dragoman.checkpoint.ct2 import suits_ct2
from dragoman.config import Config
from dragoman.engines.engine import Engine, OpenEngine, n_cores
from dragoman.errors import ConfigError, MissingPartError
from dragoman.tokens.subwords import Subwords

EngineName = Literal["auto", "torch", "ct2"]
PrecisionName = Literal["auto", "float32", "int8", "bfloat16"]


def load_engine(
    models: Sequence[tuple[Path, Config]],
    subwords: Subwords,
    *,
    engine: EngineName,
    precision: PrecisionName,
    device: str,
    threads: int | None,
    shortlist: bool,
) -> Engine:
    """The engine with the weights of these run folders, whose settings are beside them."""
    for name, value, choices in (("engine", engine, EngineName), ("precision", precision, PrecisionName)):
        if value not in get_args(choices):
            raise ConfigError(f'{name} "{value}" is not a choice', hint=f"use one of {', '.join(get_args(choices))}")
    if threads is not None and threads < 1:
        raise ConfigError(f"threads={threads} is below 1", hint="give a whole number above 0")
    if len(models) > 1 and (engine == "ct2" or precision in ("int8", "bfloat16")):
        raise ConfigError("several models are averaged by the torch engine, in float32", hint="use --engine torch")
    folder, config = models[0]
    if engine == "auto":
        suits = len(models) == 1 and precision != "bfloat16" and _suits_ct2(config, device)
        engine = "ct2" if suits else "torch"
    if engine == "torch":
        if precision in ("int8", "bfloat16"):
            return _load_quick(folder, config, precision, device, threads, shortlist=shortlist)
        return load_torch(models, device, threads)
    if precision == "bfloat16":
        raise ConfigError("the engine ct2 has no bfloat16 on a processor", hint="use --engine torch, or int8")
    if precision == "auto":
        precision = "int8" if config.search.int8 else "float32"
    return _load_ct2(folder, config, subwords, precision, device, threads, shortlist=shortlist)


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
    with _torch_needed("sampling, attention, alignments and the torch engine need"):
        import torch

        from dragoman.engines.torch_engine import load_torch_engine
    if threads is not None:
        torch.set_num_threads(threads)
    return load_torch_engine([(folder, config.model) for folder, config in models], device)


@contextmanager
def _torch_needed(subject: str) -> Iterator[None]:
    """Says what to install where torch is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingPartError(f"{subject} torch", hint="pip install 'dragoman[train]'") from None


def _load_quick(
    folder: Path,
    config: Config,
    precision: Literal["int8", "bfloat16"],
    device: str,
    threads: int | None,
    *,
    shortlist: bool,
) -> Engine:
    with _torch_needed(f"the torch engine in {precision} needs"):
        from dragoman.engines.quick_engine import load_quick_engine
        from dragoman.engines.torch_engine import pick_device
    if pick_device(device).type != "cpu":
        raise ConfigError(f"{precision} is for the processor", hint="use --precision float32, or --device cpu")
    return load_quick_engine(folder, config.model, precision, shortlist=shortlist, n_threads=threads or n_cores())


def _load_ct2(
    folder: Path,
    config: Config,
    subwords: Subwords,
    precision: Literal["float32", "int8"],
    device: str,
    threads: int | None,
    *,
    shortlist: bool,
) -> Engine:
    try:
        import ctranslate2  # noqa: F401
    except ModuleNotFoundError:
        raise MissingPartError("the engine ct2 needs CTranslate2", hint="pip install ctranslate2") from None
    from dragoman.engines.ct2_engine import load_ct2_engine

    if device == "cuda":
        raise ConfigError("the engine ct2 runs on the processor here", hint="use --engine torch, or --device cpu")
    return load_ct2_engine(folder, config, subwords, precision=precision, threads=threads, shortlist=shortlist)
