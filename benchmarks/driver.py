"""The driver's side of a measurement: the processes of all peers, which sleep while another works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.environments import ROOT

T = TypeVar("T")


class Worker:
    """A peer's process."""

    def __init__(self, peer: str, command: Sequence[object], log: Path, threads: int) -> None:
        """`command` are the interpreter and its arguments; what it prints goes to the log."""
        self.peer = peer
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "w") as file:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def answer(self) -> dict[str, Any]:
        """The next line it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.peer} has ended; the reason is in {self._log.relative_to(ROOT)}")
        return json.loads(line)

    def ask(self, command: str, *numbers: int) -> dict[str, Any]:
        """Lets it do this and waits for its report."""
        assert self._process.stdin is not None
        print(command, *numbers, file=self._process.stdin, flush=True)
        return self.answer()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def cores_for(threads: int) -> list[int]:
    """The cores on which all workers of a measurement stay: the last of those that there are."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def in_turn(workers: list[T], number: int) -> list[T]:
    """The order of this round: it moves on by one per round."""
    first = number % len(workers)
    return workers[first:] + workers[:first]


def check_memory(peer: str, largest_mb: float) -> None:
    """Waiting workers keep their memory, so all must fit at once; a quarter is left for longer batches to come."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free_mb = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 1024
    if free_mb < 1.25 * largest_mb:
        sys.exit(f"{free_mb:,.0f} MB are free, too little for {peer} beside the others: choose fewer with --peers")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
