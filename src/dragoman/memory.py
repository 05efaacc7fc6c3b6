"""How memory is handled in processes that are ours to tune, as those that use us as a library are not."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys

# PyTorch asks for blocks that begin at multiples of 64 bytes. Before 2.39, glibc keeps apart what it cuts off at their
# ends (tcache, fast bins), so that a block which comes back is a little too small for the next request of its size: the
# heap grows for many minutes, and no block is still in the processor's caches when it is used again.
_MENDED = (2, 39)
_TUNABLES = "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"
_N_NEW_OBJECTS = 20_000  # between two searches for garbage; else 700, which is two requests to a server


def keep_freed_memory() -> None:
    """Stops glibc from handing large blocks back to the system after each use.

    Every update of a training and every batch of a translation frees and takes the same blocks again, and the system
    clears each page anew: about a sixth of the time of a small model's update, a tenth of that of its translations.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD


def environment_for_training() -> dict[str, str]:
    """Ours, with what makes glibc use freed blocks again, which it reads when a process starts; a user's stays."""
    name, version = platform.libc_ver()
    is_old = name == "glibc" and tuple(map(int, version.split(".")[:2])) < _MENDED
    return {**({"GLIBC_TUNABLES": _TUNABLES} if is_old else {}), **os.environ}


def start_anew_for_training() -> None:
    """Starts this program once more in its own process, if its environment has to be another one."""
    environment = environment_for_training()
    if environment != os.environ and sys.executable:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def search_garbage_seldom() -> None:
    """For many small requests; what was loaded so far is no garbage and is not searched."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_N_NEW_OBJECTS, *gc.get_threshold()[1:])
