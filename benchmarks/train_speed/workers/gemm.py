"""The float32 matrix-product peak of the machine at this moment: the best of a few shapes and two kernels."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.train_speed.workers.protocol import obey, parse_arguments

_SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 512))  # rows, inner, columns
_SECONDS = 0.15  # of measuring per shape and kernel


def main() -> None:
    parse_arguments()
    products = [(a, w) for m, k, n in _SHAPES for a, w in [(torch.randn(m, k), torch.randn(n, k))]]
    kernels: list[Callable[[Tensor, Tensor], Tensor]] = [lambda a, w: torch.mm(a, w.T)]
    if torch.backends.mkldnn.is_available():
        kernels.append(lambda a, w: torch.ops.mkldnn._linear_pointwise(a, w, None, "none", [], ""))

    def run(n_repeats: int) -> dict[str, float]:
        with torch.inference_mode():
            return {"flops": max(_peak(f, a, w) for _ in range(n_repeats) for f in kernels for a, w in products)}

    obey(run, {"version": torch.__version__, "torch": torch.__version__, "parameters": 0})


def _peak(kernel: Callable[[Tensor, Tensor], Tensor], a: Tensor, w: Tensor) -> float:
    """Operations per second of the fastest call within the time allowed, which starts after a first one."""
    kernel(a, w)
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while (start := time.perf_counter()) < end:
        kernel(a, w)
        best = min(best, time.perf_counter() - start)
    return 2 * a.shape[0] * a.shape[1] * w.shape[0] / best


if __name__ == "__main__":
    main()
