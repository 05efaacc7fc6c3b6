"""The matrix-product peak of the machine at this moment, in multiply-adds per second. Needs torch."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

_SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 512))  # rows, inner, columns
_INT8_SHAPES = (*_SHAPES, (256, 512, 2048))
_SECONDS = 0.15  # of measuring per shape and kernel


@torch.inference_mode()
def float32_peak() -> float:
    """The best of a few shapes and two kernels."""
    best = 0.0
    for m, k, n in _SHAPES:
        a, w = torch.randn(m, k), torch.randn(n, k)
        times = [_fastest_s(lambda a=a, w=w: torch.mm(a, w.T))]
        if torch.backends.mkldnn.is_available():
            times.append(_fastest_s(lambda a=a, w=w: torch.ops.mkldnn._linear_pointwise(a, w, None, "none", [], "")))
        best = max(best, m * k * n / min(times))
    return best


@torch.inference_mode()
def int8_peak() -> float:
    """Bytes without sign by bytes with sign, of a scale for each column, to float32: the best of a few shapes."""
    best = 0.0
    for m, k, n in _INT8_SHAPES:
        a = torch.randint(0, 255, (m, k), dtype=torch.uint8)
        w = torch.ops.onednn.qlinear_prepack(torch.randint(-127, 127, (n, k), dtype=torch.int8), [m, k])
        scales, zeros = torch.rand(n), torch.zeros(n, dtype=torch.long)

        def product(a=a, w=w, scales=scales, zeros=zeros) -> None:
            torch.ops.onednn.qlinear_pointwise(
                a, 1.0, 128, w, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
            )

        best = max(best, m * k * n / _fastest_s(product))
    return best


def _fastest_s(call: Callable[[], object]) -> float:
    """The fastest call within the time allowed, which starts after a first one."""
    call()
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while (start := time.perf_counter()) < end:
        call()
        best = min(best, time.perf_counter() - start)
    return best
