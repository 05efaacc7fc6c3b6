"""What is read off the processor's flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.engines.processor import has_avx512, sum_bits

ZEN4 = "model name: X\nflags\t\t: fpu avx2 avx512f avx512cd avx512bw avx512dq avx512vl avx512_vnni\n"
SKYLAKE = "flags\t\t: fpu avx2 avx512f avx512cd avx512bw avx512dq avx512vl\n"
ZEN3 = "flags\t\t: fpu avx2 fma\n"
ARM = "Features\t: fp asimd\n"


@pytest.mark.parametrize(
    ("text", "machine", "is_wide", "bits"),
    [
        (ZEN4, "x86_64", True, 32),
        (SKYLAKE, "x86_64", True, 16),
        (ZEN3, "x86_64", False, 16),
        (ARM, "aarch64", False, 32),
        (None, "AMD64", False, 16),  # a system that does not tell
        (None, "arm64", False, 32),
    ],
)
def test_flags(text: str | None, machine: str, is_wide: bool, bits: int, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    assert has_avx512(tmp_path / "cpuinfo") == is_wide
    assert sum_bits(tmp_path / "cpuinfo", machine) == bits
