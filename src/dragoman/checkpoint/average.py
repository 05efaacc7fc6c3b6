"""The mean of several checkpoints: paper section 6.1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoint.folder import WEIGHTS
from dragoman.checkpoint.format import load_tensors
from dragoman.errors import ModelError


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each weight over the folders, summed in float64 one folder at a time."""
    if not folders:
        raise ModelError("there is no checkpoint to average", hint="name at least one folder")
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    for folder in folders:
        tensors = load_tensors(folder / WEIGHTS)
        if not sums:
            dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
            sums = {name: torch.zeros_like(tensor, dtype=torch.float64) for name, tensor in tensors.items()}
        if {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in sums.items()}:
            raise ModelError(f"{folder} holds another model than {folders[0]}", hint="average checkpoints of one run")
        for name, tensor in tensors.items():
            sums[name] += tensor
    return {name: (total / len(folders)).to(dtypes[name]) for name, total in sums.items()}
