"""What a run will come to, from the validations it has made so far, with an interval that is honest.

A run whose rate falls in a straight line to zero keeps improving until its end, by somewhat less than its present slope
promises. How much less was measured on our own runs (docs/notes/0005-budget.md): what was really gained, divided by
what the slope over the last validations promised. The interval spans those quotients; a test holds that it covers them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_N_POINTS = 3  # validations that make the slope
_HALF = 0.45  # of the way: where the second half begins, give or take a validation
_DOUBLING = (0.1, 0.4, 0.8)  # the least, the usual and the most of what the second half gave, for twice the time
_EARLIEST = 0.25  # share of the way before which nothing useful can be said


class _Yield(NamedTuple):
    """The least, the usual and the most of what a slope promises that comes true, from a share of the way on."""

    share: float
    least: float
    usual: float
    most: float


_YIELDS = (_Yield(0.25, 0.2, 0.55, 0.9), _Yield(0.5, 0.3, 0.75, 1.2), _Yield(0.75, 0.2, 0.9, 1.8))


def forecast(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """The value at share 1: low, likely and high; None while it is too early.

    Given are (share of the way, value) of each validation so far. Nine runs of ten end between low and high.
    """
    recent = [*points][-_N_POINTS:]
    if len(recent) < 2 or recent[-1][0] < _EARLIEST:
        return None
    share, value = recent[-1]
    promised = _slope(recent) * (1 - share)
    gain = [one for one in _YIELDS if one.share <= share][-1]
    ends = sorted(value + part * promised for part in (gain.least, gain.most))
    return ends[0], value + gain.usual * promised, ends[1]


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least-squares line through the points."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def forecast_more(
    points: Sequence[tuple[float, float]], spent_s: float, would_spend_s: float
) -> tuple[float, float, float] | None:
    """What a finished run would have gained with more time: low, likely and high; None if it was looked at too little.

    Twice the time gives a part of what the second half of the run gave, and each doubling counts the same.
    """
    first, last = [value for share, value in points if share >= _HALF][:1], [value for _, value in points][-1:]
    if not first or points[-1][0] <= _HALF:
        return None
    n_doublings = math.log2(would_spend_s / spent_s)
    low, high = sorted(part * (last[0] - first[0]) * n_doublings for part in (_DOUBLING[0], _DOUBLING[2]))
    return low, _DOUBLING[1] * (last[0] - first[0]) * n_doublings, high
