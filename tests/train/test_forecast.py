"""The forecast, held against how our own runs really ended.

tests/golden/curves.json has (share of the way, validation loss, validation BLEU) of runs that trained to their end.
"""

from __future__ import annotations

import json
import math
from itertools import groupby
from pathlib import Path

import pytest

from dragoman.train.forecast import Metric, forecast, forecast_more

CURVES = json.loads((Path(__file__).parents[1] / "golden" / "curves.json").read_text(encoding="utf-8"))
COLUMNS: dict[Metric, int] = {"loss": 1, "bleu": 2}


KINDS = [(metric, decays) for metric in COLUMNS for decays in (False, True)]


def forecasts(metric: Metric, decays: bool) -> list[tuple[float, tuple[float, float, float], float]]:
    """Share of the way, forecast and end, of every validation of every run at which something could be said."""
    found = []
    for name, curve in CURVES.items():
        if ("weights decay" in name) != decays:
            continue
        both_ways = 0.33 if "both ways" in name else 0.0
        for n in range(2, len(curve)):
            points = [(point[0], point[COLUMNS[metric]]) for point in curve[:n]]
            told = forecast(metric, points, decays=decays, both_ways=both_ways)
            if told is not None:
                found.append((curve[n - 1][0], told, curve[-1][COLUMNS[metric]]))
    return found


@pytest.mark.parametrize(("metric", "decays"), KINDS)
def test_nine_ends_of_ten_lie_in_the_interval(metric: Metric, decays: bool) -> None:
    told = forecasts(metric, decays)
    assert len(told) >= 10
    n_inside = sum(low <= end <= high for _, (low, _, high), end in told)
    assert n_inside >= 0.9 * len(told)


@pytest.mark.parametrize(("metric", "decays"), KINDS)
def test_from_halfway_on_the_likely_value_is_off_by_three_percent_or_five(metric: Metric, decays: bool) -> None:
    """Five where weights decay: more of what they come to comes late, and their BLEU jumps more on the way."""
    errors = [likely / end - 1 for share, (_, likely, _), end in forecasts(metric, decays) if share >= 0.5]
    assert math.sqrt(sum(error**2 for error in errors) / len(errors)) < (0.05 if decays else 0.03)


@pytest.mark.parametrize(("metric", "decays"), KINDS)
def test_the_interval_narrows_and_says_something(metric: Metric, decays: bool) -> None:
    told = forecasts(metric, decays)
    for _, run in groupby(told, key=lambda one: one[2]):  # no two runs end alike
        widths = [high - low for _, (low, _, high), _ in run]
        assert widths[-1] < 0.7 * widths[0] or len(widths) < 3
    now = [curve[n][COLUMNS[metric]] for curve in CURVES.values() for n in range(len(curve))]
    assert max(high - low for _, (low, _, high), _ in told) < max(now) - min(now), "narrower than all that was seen"


def test_a_line_over_the_logarithm_is_taken_on_in_part() -> None:
    points = [(share, 10 + 3 * math.log(share)) for share in (0.2, 0.3, 0.4)]
    found = forecast("loss", points, decays=False, both_ways=0.0)
    assert found is not None
    low, likely, high = found
    promised = -3 * math.log(0.4)
    assert likely == pytest.approx(points[-1][1] + 0.7 * promised, rel=1e-12)
    assert low < points[-1][1] + 0.3 * promised < likely < points[-1][1] + 1.4 * promised < high


def test_where_weights_decay_more_of_it_comes_true() -> None:
    points = [(share, 30 + 3 * math.log(share)) for share in (0.2, 0.3, 0.4)]
    promised = -3 * math.log(0.4)
    metrics: list[tuple[Metric, float]] = [("loss", 1.0), ("bleu", 1.4)]
    for metric, part in metrics:
        found = forecast(metric, points, decays=True, both_ways=0.0)
        assert found is not None
        assert found[1] == pytest.approx(points[-1][1] + part * promised, rel=1e-12)


def test_nothing_is_said_too_early() -> None:
    def told(points: list[tuple[float, float]], both_ways: float = 0.0) -> bool:
        return forecast("loss", points, decays=False, both_ways=both_ways) is not None

    assert not told([])
    assert not told([(0.5, 3.0)])
    assert not told([(0.0, 9.0), (0.1, 5.0), (0.2, 4.0)])
    points = [(0.1, 5.0), (0.2, 4.0), (0.34, 3.5), (0.39, 3.0)]
    assert told(points[:-1])
    assert not told(points[:-1], both_ways=0.33), "the leap after reading both ways is not over"
    assert told(points, both_ways=0.33)
    assert forecast_more([(0.1, 3.0), (0.5, 9.0)], 600, 1200) is None


def test_nothing_is_said_of_a_bleu_that_is_still_rising_faster() -> None:
    for value, is_told in ((9.9, False), (10.1, True)):
        points = [(0.3, 4.0), (0.5, value)]
        assert (forecast("bleu", points, decays=True, both_ways=0.0) is not None) == is_told
        assert forecast("loss", points, decays=True, both_ways=0.0) is not None


def test_more_time_gives_a_part_of_the_second_half_per_doubling() -> None:
    points = [(0.25, 20.0), (0.5, 28.0), (0.75, 31.0), (1.0, 33.0)]
    assert forecast_more(points, 600, 1200) == pytest.approx((0.5, 1.25, 3.0))
    quadrupled = forecast_more(points, 600, 2400)
    assert quadrupled == pytest.approx((1.0, 2.5, 6.0))
