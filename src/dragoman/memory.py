"""How memory is handled in processes that are ours to tune, as those that use us as a library are not."""

from __future__ import annotations

import ctypes
import gc
import platform

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


def search_garbage_seldom() -> None:
    """For many small requests; what was loaded so far is no garbage and is not searched."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_N_NEW_OBJECTS, *gc.get_threshold()[1:])
