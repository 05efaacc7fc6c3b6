"""Memory that is taken and freed again and again."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

from dragoman.memory import environment_for_training

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


# Takes blocks at multiples of 64 bytes, gives each back while small ones are taken, and asks for one of its size.
BLOCKS = """
import ctypes
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]
def take(size):
    block = ctypes.c_void_p()
    assert libc.posix_memalign(ctypes.byref(block), 64, ctypes.c_size_t(size)) == 0
    return block.value
from dragoman.memory import keep_freed_memory
keep_freed_memory()
n_again = 0
for i in range(20):
    size = 5_000_000 + 4096 * i
    block, _ = take(size), take(100_000)
    for n_bytes in 4 * [24, 40, 56, 72, 88, 104, 120]:
        libc.malloc(n_bytes)
    libc.free(block)
    n_again += take(size) == block
print(n_again)
"""

# Says what glibc was told each time that it starts, and begins a command that has nothing to do.
COMMAND = """
import json, os, sys
print(json.dumps([os.getpid(), os.environ.get("GLIBC_TUNABLES"), sys.argv[1:]]), flush=True)
from dragoman.cli.main import main
main()
"""

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")


@needs_glibc
def test_pages_are_not_cleared_anew_each_time() -> None:
    def faults(keep: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(keep=keep)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert faults("from dragoman.memory import keep_freed_memory; keep_freed_memory()") * 10 < faults("")


@needs_glibc
def test_training_gets_the_blocks_again_that_it_gave_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS], capture_output=True, text=True, check=True, env=environment_for_training()
    )
    assert int(done.stdout) >= 18  # of 20; 2 without it, by glibc 2.36


@pytest.mark.parametrize(("args", "trains"), [(["train", "--help"], True), (["translate", "--help"], False)])
def test_commands_that_train_start_anew_where_glibc_has_to_be_told(
    monkeypatch: pytest.MonkeyPatch, args: list[str], trains: bool
) -> None:
    """Once, in the same process, with the same words; what the user told glibc stays."""
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    told = environment_for_training().get("GLIBC_TUNABLES")
    for given in (None, "glibc.malloc.perturb=0"):
        environment = dict(os.environ) | ({"GLIBC_TUNABLES": given} if given else {})
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *args], capture_output=True, text=True, check=True, env=environment
        )
        starts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        pid = starts[0][0]
        expected = [given, told] if trains and told and not given else [given]
        assert starts == [[pid, tunables, args] for tunables in expected]
        assert f"dragoman {args[0]}" in done.stdout


@pytest.mark.parametrize(
    ("library", "is_told"),
    [(("glibc", "2.36"), True), (("glibc", "2.4"), True), (("glibc", "2.39"), False), (("", ""), False)],
)
def test_a_glibc_that_is_mended_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, library: tuple[str, str], is_told: bool
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setattr(platform, "libc_ver", lambda: library)
    assert ("GLIBC_TUNABLES" in environment_for_training()) == is_told
