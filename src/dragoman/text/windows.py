"""Lines as they come, a window at a time: full ones of a file, and of a slow source what there is."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator

_WAIT_S = 0.02  # for the next line, before what there is makes a window


def windows(lines: Iterable[str], most: int, size: Callable[[], int] | None = None) -> Generator[list[str], None, None]:
    """All lines in order, in lists of at most `most`, or as many as `size` says at the time.

    A list is not held back for lines that have not come yet; while none comes, it is empty now and then, so that the
    caller can do something else. Lines are read in a thread of their own, not far ahead. What goes wrong in reading is
    raised after the lines before it.
    """
    waiting: queue.Queue[str | None] = queue.Queue(maxsize=most)
    failure: list[BaseException] = []
    is_over = threading.Event()

    def put(line: str | None) -> None:
        while not is_over.is_set():
            try:
                waiting.put(line, timeout=0.1)
            except queue.Full:
                continue
            break

    def read() -> None:
        try:
            for line in lines:
                put(line)
                if is_over.is_set():
                    return
        except BaseException as error:  # handed to the other thread
            failure.append(error)
        put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        yield from _gathered(waiting, size or (lambda: most))
    finally:
        is_over.set()
    if failure:
        raise failure[0]


def _gathered(waiting: queue.Queue[str | None], size: Callable[[], int]) -> Iterator[list[str]]:
    window: list[str] = []
    while True:
        try:
            line = waiting.get(timeout=_WAIT_S)
        except queue.Empty:
            yield window
            window = []
            continue
        if line is None:
            break
        window.append(line)
        if len(window) >= size():
            yield window
            window = []
    if window:
        yield window
