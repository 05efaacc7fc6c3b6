"""Settings, the length penalty, hypotheses and the choice of the largest values."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.search.step import Hypothesis, SearchConfig, length_penalty
from dragoman.search.top import top


def test_defaults_are_the_papers():
    config = SearchConfig()
    assert (config.beam, config.length_penalty, config.max_extra_tokens) == (4, 0.6, 50)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("beam", 0),
        ("length_penalty", math.nan),
        ("length_penalty", math.inf),
        ("length_penalty", -10.5),
        ("max_extra_tokens", -1),
    ],
)
def test_impossible_settings_are_refused_by_name_and_value(setting, value):
    with pytest.raises(ConfigError, match=f"search.{setting}={value}") as error:
        SearchConfig(**{setting: value})
    assert error.value.hint


def test_length_penalty_is_gnmts():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(19, 0.5) == 2.0
    assert length_penalty(7, -1.0) == 0.5
    assert length_penalty(100, 0.0) == 1.0


def test_hypothesis_counts_the_end():
    hypothesis = Hypothesis.of([5, 6], [-1.0, -2.0, -0.5], 1.0)
    assert hypothesis == Hypothesis((5, 6), -3.5, -3.5 / (8 / 6), (-1.0, -2.0, -0.5))


def test_settings_are_read_without_torch():
    code = "import sys, dragoman.search.step; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(
    values=st.lists(
        st.lists(st.sampled_from([-math.inf, -2.0, -1.0, 0.0]), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    k=st.integers(1, 8),
)
@settings(deadline=None, max_examples=100)
def test_top_takes_the_earlier_of_equal_values(values, k):
    found, places = top(torch.tensor(values), k)
    for row, row_values, row_places in zip(values, found.tolist(), places.tolist(), strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
        assert row_places == expected
        assert row_values == [row[i] for i in expected]


@pytest.mark.parametrize("n_values", [2000, 2048, 2085, 8000])
@pytest.mark.parametrize("n_levels", [3, 40, 100_000])
def test_top_of_long_rows_is_found_by_blocks(n_values: int, n_levels: int) -> None:
    """Few levels make many equal values; the last place, which is in no whole block, has the largest of a row."""
    torch.manual_seed(n_values)
    values_NV = torch.randint(n_levels, (30, n_values)).float()
    values_NV[0, -1] = n_levels
    values_NV[1] = -math.inf
    values_NV[2, 7:] = -math.inf
    for k in (1, 5, 9):
        found, places = top(values_NV, k)
        expected, at = values_NV.sort(dim=1, descending=True, stable=True)
        assert torch.equal(found, expected[:, :k])
        assert torch.equal(places, at[:, :k])
