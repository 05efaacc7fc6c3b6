"""The worker's side of a measurement: a process that obeys commands on stdin, with one line of JSON on stdout for each.

Only the standard library: every peer's environment has that.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def obey(commands: Mapping[str, Callable[..., dict[str, Any]]], hello: dict[str, Any]) -> None:
    """Says hello, then answers each line, a command and its whole numbers, until `quit` or the end of stdin."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints goes to stderr
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "quit":
            return
        print(json.dumps(commands[command](*map(int, numbers))), file=answers, flush=True)


def stay_on(cores: Sequence[int]) -> None:
    """Keeps this process on these cores."""
    os.sched_setaffinity(0, cores)


def cpu_s() -> float:
    """Time that the processes ran, of those other than this one to a hundredth of a second."""
    ticks = sum(int(field) for process in _others() for field in _stat(process / "stat")[11:13])  # user, system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def peak_rss_mb() -> float:
    """The largest resident size of each process, added up; what others share with this one counts once, as its own."""
    shared = sum(_status_kb(process, "RssShmem") for process in _others())
    return (sum(_status_kb(process, "VmHWM") for process in [Path("/proc/self"), *_others()]) - shared) / 1024


def forget_peak_rss() -> None:
    """Makes the largest resident size of this process the present one."""
    Path("/proc/self/clear_refs").write_text("5")


def _others() -> list[Path]:
    """The processes that this one started, in /proc: a peer may share its work among several."""
    return [path.parent for path in Path("/proc").glob("[0-9]*/stat") if _stat(path)[1:2] == [str(os.getpid())]]


def _status_kb(process: Path, name: str) -> int:
    """A figure of /proc/<pid>/status; 0 if the process has just ended."""
    try:
        lines = (process / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name + ":")), 0)


def _stat(path: Path) -> list[str]:
    """What /proc/<pid>/stat says after the name, from the state on; nothing if the process has just ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
