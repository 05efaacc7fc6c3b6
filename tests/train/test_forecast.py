"""The forecast, held against how our own runs really ended.

tests/golden/curves.json has (share of the way, validation loss, validation BLEU) of runs that trained to their end.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dragoman.train.forecast import forecast, forecast_more

CURVES = json.loads((Path(__file__).parents[1] / "golden" / "curves.json").read_text(encoding="utf-8"))
COLUMNS = {"loss": 1, "bleu": 2}


def forecasts(column: int) -> list[tuple[float, tuple[float, float, float], float]]:
    """Share of the way, forecast and end, of every validation of every run at which something could be said."""
    found = []
    for name, curve in CURVES.items():
        both_ways = 0.33 if "both ways" in name else 0.0
        for n in range(2, len(curve)):
            told = forecast([(point[0], point[column]) for point in curve[:n]], both_ways=both_ways)
            if told is not None:
                found.append((curve[n - 1][0], told, curve[-1][column]))
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_nine_ends_of_ten_lie_in_the_interval(name: str) -> None:
    told = forecasts(COLUMNS[name])
    assert len(told) >= 10
    n_inside = sum(low <= end <= high for _, (low, _, high), end in told)
    assert n_inside >= 0.9 * len(told)


@pytest.mark.parametrize("name", COLUMNS)
def test_from_halfway_on_the_likely_value_is_off_by_three_percent(name: str) -> None:
    errors = [likely / end - 1 for share, (_, likely, _), end in forecasts(COLUMNS[name]) if share >= 0.5]
    assert math.sqrt(sum(error**2 for error in errors) / len(errors)) < 0.03


@pytest.mark.parametrize("name", COLUMNS)
def test_the_interval_narrows_and_says_something(name: str) -> None:
    told = forecasts(COLUMNS[name])
    early = [high - low for share, (low, _, high), _ in told if share < 0.5]
    late = [high - low for share, (low, _, high), _ in told if share > 0.8]
    assert max(late) < min(early)
    now = [curve[n][COLUMNS[name]] for curve in CURVES.values() for n in range(len(curve))]
    assert max(early) < max(now) - min(now), "narrower than all that was seen"


def test_a_line_over_the_logarithm_is_taken_on_in_part() -> None:
    points = [(share, 10 + 3 * math.log(share)) for share in (0.2, 0.3, 0.4)]
    found = forecast(points)
    assert found is not None
    low, likely, high = found
    promised = -3 * math.log(0.4)
    assert likely == pytest.approx(points[-1][1] + 0.7 * promised, rel=1e-12)
    assert low < points[-1][1] + 0.3 * promised < likely < points[-1][1] + 1.4 * promised < high


def test_nothing_is_said_too_early() -> None:
    assert forecast([]) is None
    assert forecast([(0.5, 3.0)]) is None
    assert forecast([(0.0, 9.0), (0.1, 5.0), (0.2, 4.0)]) is None
    points = [(0.1, 5.0), (0.2, 4.0), (0.32, 3.5), (0.34, 3.0)]
    assert forecast(points[:-1]) is not None
    assert forecast(points[:-1], both_ways=0.33) is None
    assert forecast(points, both_ways=0.33) is not None
    assert forecast_more([(0.1, 3.0), (0.5, 9.0)], 600, 1200) is None


def test_more_time_gives_a_part_of_the_second_half_per_doubling() -> None:
    points = [(0.25, 20.0), (0.5, 28.0), (0.75, 31.0), (1.0, 33.0)]
    assert forecast_more(points, 600, 1200) == pytest.approx((0.5, 1.75, 3.5))
    quadrupled = forecast_more(points, 600, 2400)
    assert quadrupled == pytest.approx((1.0, 3.5, 7.0))
