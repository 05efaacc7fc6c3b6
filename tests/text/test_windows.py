"""Lines in windows: all of them, in order, and none held back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dragoman.text.windows import windows


def test_full_windows_and_a_rest() -> None:
    found = [window for window in windows((str(i) for i in range(10)), 4) if window]
    assert [line for window in found for line in window] == [str(i) for i in range(10)]
    assert max(map(len, found)) <= 4
    assert list(windows([], 4)) in ([], [[]])


def test_a_line_does_not_wait_for_the_next() -> None:
    may_go_on = threading.Event()

    def slow() -> Iterator[str]:
        yield "first"
        assert may_go_on.wait(30), "the first line was held back"
        yield "second"

    seen = []
    for window in windows(slow(), 100):
        seen += window
        if seen:
            may_go_on.set()
    assert seen == ["first", "second"]


def test_a_failure_comes_after_the_lines_before_it() -> None:
    def broken() -> Iterator[str]:
        yield "first"
        raise ValueError("line 2")

    seen: list[str] = []
    with pytest.raises(ValueError, match="line 2"):  # noqa: PT012
        for window in windows(broken(), 100):
            seen += window
    assert seen == ["first"]


def test_reading_does_not_run_ahead() -> None:
    n_read = 0

    def counted() -> Iterator[str]:
        nonlocal n_read
        for i in range(10_000):
            n_read += 1
            yield str(i)

    source = windows(counted(), 10)
    next(source)
    assert n_read <= 40
    source.close()
