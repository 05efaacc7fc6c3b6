"""How far a file is, said on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dragoman.cli.duration import duration


class Counted:
    """Says on stderr how far a file is, now and then: often at a terminal, else every half minute."""

    def __init__(self, total: int | None, n_before: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._n_before, self._clock = total, n_before, clock
        self._began = self._said = clock()
        self._is_terminal = sys.stderr.isatty()

    def show(self, n_done: int) -> None:
        """Call it after each line."""
        now = self._clock()
        if now - self._said < (0.5 if self._is_terminal else 30):
            return
        self._said = now
        rate = (n_done - self._n_before) / (now - self._began)
        text = f"{n_done:,} lines, {rate:,.0f} a second"
        if self._total is not None:
            left_s = (self._total - n_done) / rate
            text = f"{n_done:,} of {self._total:,} lines, {rate:,.0f} a second, ETA {duration(left_s)}"
        end = "\n" if not self._is_terminal or n_done == self._total else "\x1b[K\r"
        print(text, file=sys.stderr, end=end, flush=True)

    def close(self) -> None:
        """Leaves a clean line at a terminal."""
        if self._is_terminal:
            print(end="\x1b[K", file=sys.stderr, flush=True)
