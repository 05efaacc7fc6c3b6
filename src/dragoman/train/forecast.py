"""What a run will come to, from the validations it has made so far, with an interval that is honest.

While the rate falls in a straight line to zero, loss and BLEU are close to straight lines over the logarithm of the
share of the way that is done, and bend a little towards the end. So the line through the last validations promises a
gain, of which a part comes true. How large a part was measured on our own runs (docs/notes/0005-budget.md), and a test
holds that the interval covers their ends. It is larger where weights decay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Metric = Literal["loss", "bleu"]
Range = tuple[float, float, float]  # low, likely, high: nine runs of ten end between low and high

_N_POINTS = 6  # validations that make the line
_EARLIEST = 0.25  # share of the way before which nothing useful can be said
_SETTLING = 0.05  # share of the way after reading both ways in which the leap that follows is not over
_LATEST = 0.99  # and from which on nothing is left to say
_LOWEST_BLEU = 10.0  # below, it rises ever faster, as no line does
_PART: Range = (0.3, 0.7, 1.4)  # of what the line promises
_PART_OF_DECAYING: dict[Metric, Range] = {"loss": (0.6, 1.0, 1.6), "bleu": (0.5, 1.4, 2.5)}
_WOBBLE_OF_LOSS = 0.025  # by how much a validation strays, as a part of its value
_WOBBLE_OF_BLEU = 1.0  # the same, in points: a sample of some hundred sentences strays as much at 10 as at 40
_HALF = 0.45  # share of the way where the second half begins, give or take a validation
_DOUBLING: Range = (0.1, 0.25, 0.6)  # twice the time gives this part of what the second half of a run gave


def forecast(metric: Metric, points: Sequence[tuple[float, float]], *, decays: bool, both_ways: float) -> Range | None:
    """The value at the end, given (share of the way, value) of each validation; None if nothing can be said of it.

    `decays` says whether the run's weights do. While the text is read both ways, until that share of the way, and just
    after, nothing is said: the leap that follows is in no line.
    """
    recent = [(math.log(share), value) for share, value in points if share > 0][-_N_POINTS:]
    earliest = max(_EARLIEST, both_ways + _SETTLING)
    if len(recent) < 2 or not earliest <= math.exp(recent[-1][0]) < _LATEST:
        return None
    at, value = recent[-1]
    if metric == "bleu" and value < _LOWEST_BLEU:
        return None
    promised = -_slope(recent) * at
    wobble = _WOBBLE_OF_LOSS * value if metric == "loss" else _WOBBLE_OF_BLEU
    least, likely, most = (value + part * promised for part in (_PART_OF_DECAYING[metric] if decays else _PART))
    return min(least, most) - wobble, likely, max(least, most) + wobble


def forecast_more(points: Sequence[tuple[float, float]], spent_s: float, would_spend_s: float) -> Range | None:
    """What a finished run would have gained with more time; None if it was looked at too little.

    Each doubling of the time gives a part of what the second half of the run gave.
    """
    second_half = [value for share, value in points if share >= _HALF]
    if len(second_half) < 2:
        return None
    gained = (second_half[-1] - second_half[0]) * math.log2(would_spend_s / spent_s)
    low, high = sorted(part * gained for part in (_DOUBLING[0], _DOUBLING[2]))
    return low, _DOUBLING[1] * gained, high


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least-squares line through the points."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
