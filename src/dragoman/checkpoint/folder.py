"""The run folder: what its files are called and how they are written. No torch here.

A model folder holds config.toml, model.safetensors and subwords.model. A checkpoint is a model folder that also
holds training.safetensors (the optimizer's moments) and state.json (the step, the place in the text, the best score
so far). No state of a random generator is kept: what is drawn follows from the seed and the step. The format's version
is in the metadata of every safetensors file and in state.json. Everything is written under a temporary name and then
renamed, so that a reader sees all of a file or none of it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from dragoman.errors import ModelError

FORMAT_VERSION = 1
CONFIG = "config.toml"
WEIGHTS = "model.safetensors"
SUBWORDS = "subwords.model"
SHORTLIST = "shortlist.safetensors"
TRAINING = "training.safetensors"
STATE = "state.json"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary name beside `path`, then renames the result to `path`."""
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the name `folder` when all that is done in the block has succeeded."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Deletes a folder: a kill on the way leaves none of it under its name."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    folder.rename(part)
    shutil.rmtree(part)


def remove_leftovers(run: Path) -> None:
    """Deletes what a kill left behind under a temporary name."""
    for part in [*run.glob(".*.part"), *(run / "checkpoints").glob(".*.part")]:
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink()


def checkpoint_folder(run: Path, step: int) -> Path:
    """Where the checkpoint of a step is kept."""
    return run / "checkpoints" / f"step-{step:08d}"


def checkpoints(run: Path) -> dict[int, Path]:
    """The run's checkpoints by step, oldest first."""
    numbered = {folder.name.removeprefix("step-"): folder for folder in (run / "checkpoints").glob("step-*")}
    return dict(sorted((int(number), folder) for number, folder in numbered.items() if number.isdecimal()))


def load_state(folder: Path) -> dict[str, Any]:
    """The state.json of a checkpoint."""
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{folder} has no {STATE}", hint="name a checkpoint that training wrote") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / STATE} cannot be read ({error})", hint="delete this checkpoint") from None
    _check_version(folder / STATE, state)
    return state


@contextmanager
def open_weights(path: Path, framework: str) -> Iterator[Any]:
    """A safetensors file of ours, open for reading as tensors of the framework named."""
    try:
        with safe_open(path, framework=framework) as file:
            _check_version(path, file.metadata())
            yield file
    except FileNotFoundError:
        raise ModelError(f"{path.parent} has no {path.name}", hint="name a run folder or a checkpoint") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read ({error})", hint="it is damaged or no safetensors file") from None


def read_sizes(path: Path) -> dict[str, int]:
    """The number of values of each tensor in a safetensors file."""
    with open_weights(path, "numpy") as file:
        return {name: math.prod(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _check_version(path: Path, metadata: Mapping[str, Any] | None) -> None:
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    if version is None or not str(version).isdigit():
        raise ModelError(f"{path} was not written by Dragoman", hint="name a run folder that `dragoman train` made")
    if int(version) > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format {version}, and this Dragoman reads up to {FORMAT_VERSION}",
            hint="update Dragoman: pip install --upgrade dragoman",
        )
