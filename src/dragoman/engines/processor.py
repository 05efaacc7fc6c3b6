"""What the processor can do, as far as it decides how we compute."""

from __future__ import annotations

import platform
import time
from functools import cache
from pathlib import Path

from dragoman.checkpoint.int8 import SumBits

CPUINFO = Path("/proc/cpuinfo")
_AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}  # what CTranslate2's kernels for it are built for


def has_avx512(cpuinfo: Path = CPUINFO) -> bool:
    """Whether CTranslate2 can use its widest vectors, as far as the system tells."""
    return _flags(cpuinfo) >= _AVX512


def sum_bits(cpuinfo: Path = CPUINFO, machine: str | None = None) -> SumBits:
    """In how many bits products of bytes are added up; x86 processors without VNNI begin in 16, which may overflow."""
    is_x86 = (machine or platform.machine()) in ("x86_64", "AMD64")
    return 16 if is_x86 and "avx512_vnni" not in _flags(cpuinfo) else 32


@cache
def has_bfloat16() -> bool:
    """Whether the processor has products of bfloat16; without, torch takes tens of times as long as for float32."""
    import torch

    def least_s(dtype: torch.dtype) -> float:
        x, weight, times = torch.ones(512, 128, dtype=dtype), torch.ones(128, 128, dtype=dtype), []
        for _ in range(5):
            began = time.perf_counter()
            x @ weight
            times.append(time.perf_counter() - began)
        return min(times)

    return least_s(torch.bfloat16) < 3 * least_s(torch.float32)


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """What the processor calls itself, or else its kind."""
    return _said(cpuinfo, "model name") or platform.processor() or platform.machine()


def _flags(cpuinfo: Path) -> set[str]:
    """What Linux says that an x86 processor has; nothing elsewhere."""
    return set(_said(cpuinfo, "flags").split())


def _said(cpuinfo: Path, what: str) -> str:
    """What Linux says of the first core."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == what), "")
