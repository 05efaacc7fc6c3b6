"""Memory that is taken and freed again and again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np
{keep}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(2_000_000)
before = faults()
for _ in range(20):
    np.ones(2_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
def test_pages_are_not_cleared_anew_each_time() -> None:
    def faults(keep: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(keep=keep)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert faults("from dragoman.memory import keep_freed_memory; keep_freed_memory()") * 10 < faults("")
