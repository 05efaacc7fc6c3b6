"""Products of matrices, each by the library that is quickest at it on this processor.

PyTorch leaves products of float32 to MKL, whose vectors are half as wide where the processor is not Intel's: if such
a one has AVX-512, oneDNN is up to 2.3 times as fast.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

_CPUINFO = Path("/proc/cpuinfo")


def product(a: Tensor, b: Tensor) -> Tensor:
    """a · b. Outside autograd: whoever calls it makes the gradient."""
    if a.dtype == torch.float32 and a.device.type == "cpu" and _is_for_onednn():
        return cast("Tensor", torch.ops.mkldnn._linear_pointwise(a, b.T, None, "none", [], ""))
    return torch.mm(a, b)


def turned_product(a: Tensor, b: Tensor) -> Tensor:
    """a' · b: a sum over the rows of both, as the gradient of a weight is."""
    # The wider of the two lies along the vectors of the processor.
    return product(a.T, b) if a.shape[1] <= b.shape[1] else product(b.T, a).T


@cache
def _is_for_onednn() -> bool:
    """A rule and not a measurement: every process of every run on a machine must come to the same bits."""
    has_wide_vectors = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return has_wide_vectors and torch.backends.mkldnn.is_available() and "GenuineIntel" not in _maker()  # type: ignore[no-untyped-call]


def _maker() -> str:
    """Who made the processor, as far as the system tells."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("vendor_id")), "")
