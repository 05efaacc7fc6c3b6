"""fairseq's commands: `python -m benchmarks.time_to_quality.launch.fairseq {preprocess,train,generate} FLAGS`."""

from __future__ import annotations

import importlib
import sys

import torch
from torch import Tensor

from benchmarks.old_packages import hashable_dataclasses

_layer = torch._transformer_encoder_layer_fwd
_OF_PADDING = 1  # of torch's kinds of mask


def _layer_with_mask(*args: Tensor | float | None) -> Tensor:
    """torch now wants to be told what kind of mask comes last, which fairseq does not know; it is that of padding."""
    return _layer(*args, mask_type=None if args[-1] is None else _OF_PADDING)


if __name__ == "__main__":
    torch._transformer_encoder_layer_fwd = _layer_with_mask
    command = sys.argv.pop(1)
    with hashable_dataclasses():
        importlib.import_module(f"fairseq_cli.{command}").cli_main()
