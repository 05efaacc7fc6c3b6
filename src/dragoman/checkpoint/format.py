"""Weights to disk and back, as safetensors: nothing here can run code from a file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman.checkpoint.folder import (
    CONFIG,
    FORMAT_VERSION,
    STATE,
    SUBWORDS,
    TRAINING,
    WEIGHTS,
    new_folder,
    open_weights,
    write_atomically,
    write_text,
)
from dragoman.checkpoint.shapes import check_shapes
from dragoman.errors import ModelError


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors to a safetensors file, whole or not at all."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"format": "dragoman", "version": str(FORMAT_VERSION)}
    write_atomically(path, lambda part: save_file(on_cpu, part, metadata))


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file that this version of the format can read."""
    with open_weights(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def load_weights(model: nn.Module, path: Path) -> None:
    """Fills the model with the weights of a file, which must be exactly the model's."""
    tensors = load_tensors(path)
    shapes, expected = ({name: value.shape for name, value in each.items()} for each in (tensors, model.state_dict()))
    check_shapes(path, shapes, expected)
    model.load_state_dict(tensors)


def save_model(folder: Path, weights: Mapping[str, Tensor], like: Path) -> None:
    """Writes a model folder with these weights and the settings and subwords of the folder `like`."""
    with new_folder(folder) as part:
        save_tensors(part / WEIGHTS, weights)
        for name in (CONFIG, SUBWORDS):
            if not (like / name).is_file():
                raise ModelError(f"{like} has no {name}", hint="name a run folder or a checkpoint")
            shutil.copyfile(like / name, part / name)


def save_checkpoint(
    folder: Path,
    *,
    weights: Mapping[str, Tensor],
    training: Mapping[str, Tensor],
    state: Mapping[str, Any],
    config: str,
    subwords: Path,
) -> None:
    """Writes a checkpoint, whole or not at all. One of this step that is there already is the same: runs are exact."""
    if folder.exists():
        return
    with new_folder(folder) as part:
        save_tensors(part / WEIGHTS, weights)
        save_tensors(part / TRAINING, training)
        write_text(part / CONFIG, config)
        write_text(part / STATE, json.dumps({"version": FORMAT_VERSION, **state}, indent=1) + "\n")
        shutil.copyfile(subwords, part / SUBWORDS)
