"""Lines without end through something that works on many at once, in order and in constant memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from dragoman.text.windows import windows

_FIRST_WINDOW = 64  # lines
_WINDOW_S = 2.0  # how long work on a window should take

T = TypeVar("T")


def in_windows(
    lines: Iterable[str], work: Callable[[list[str], int], list[T]], *, most: int, n_at_once: int
) -> Generator[T, None, None]:
    """What `work` makes of each line, given windows of at most `most` lines and the number of lines before them.

    Windows grow until they take about two seconds each; up to `n_at_once` are worked on side by side.
    """
    size, n_read = min(_FIRST_WINDOW, most), 0
    pending: deque[Future[list[T]]] = deque()
    failure: Exception | None = None

    def timed(chunk: list[str], n_before: int) -> list[T]:
        nonlocal size
        began = time.monotonic()
        found = work(chunk, n_before)
        size = min(most, max(_FIRST_WINDOW, int(len(chunk) * _WINDOW_S / (time.monotonic() - began))))
        return found

    # Leaving the pool waits for its work: a program may not end while an engine is busy.
    with ThreadPoolExecutor(n_at_once) as pool, closing(windows(lines, most, lambda: size)) as chunks:
        while True:
            try:
                chunk = next(chunks, None)
            except Exception as error:  # of reading: the lines before it come first
                chunk, failure = None, error
            if chunk is None:
                break
            # While no line comes, what is on the way need not wait for more.
            while pending and (not chunk or len(pending) >= n_at_once):
                yield from pending.popleft().result()
            if chunk:
                pending.append(pool.submit(timed, chunk, n_read))
                n_read += len(chunk)
        while pending:
            yield from pending.popleft().result()
    if failure is not None:
        raise failure
