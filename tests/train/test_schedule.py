"""The learning rate: the paper's equation 3, to the letter."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dragoman.train.config import TrainConfig
from dragoman.train.schedule import learning_rate

STEPS = [1, 2, 10, 399, 400, 401, 1000, 3999, 4000, 4001, 50_000, 100_000]


def equation_3(step: int, d_model: int, warmup_steps: int) -> float:
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@pytest.mark.parametrize("d_model", [128, 512, 1024])
@pytest.mark.parametrize("warmup", [1, 400, 4000])
def test_the_papers_equation(d_model: int, warmup: int) -> None:
    config = TrainConfig(warmup_steps=warmup)
    for step in STEPS:
        found = learning_rate(step, config, d_model=d_model, total_steps=100_000)
        assert found == pytest.approx(equation_3(step, d_model, warmup), rel=1e-14)


def test_the_peak_of_the_base_model() -> None:
    rates = {step: learning_rate(step, TrainConfig(), d_model=512, total_steps=100_000) for step in range(1, 10_001)}
    assert max(rates, key=lambda step: rates[step]) == 4000
    assert rates[4000] == pytest.approx(6.99e-4, abs=5e-7)
    assert rates[1] == pytest.approx(rates[4000] / 4000, rel=1e-14)


@pytest.mark.parametrize("schedule", ["paper", "linear"])
def test_lr_is_the_peak_and_scales_the_whole_curve(schedule: str) -> None:
    own = TrainConfig(schedule=schedule, lr=3e-3, warmup_steps=400)
    paper = TrainConfig(schedule=schedule, warmup_steps=400)
    assert learning_rate(400, own, d_model=512, total_steps=1000) == 3e-3
    factor = 3e-3 * (512 * 400) ** 0.5
    for step in (1, 100, 400, 401, 999, 1000):
        expected = factor * learning_rate(step, paper, d_model=512, total_steps=1000)
        assert learning_rate(step, own, d_model=512, total_steps=1000) == pytest.approx(expected, rel=1e-13)


def test_linear_falls_to_zero_just_after_the_last_step() -> None:
    config = TrainConfig(schedule="linear", lr=1.0, warmup_steps=10)
    rates = [learning_rate(step, config, d_model=64, total_steps=50) for step in range(1, 53)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)], rel=1e-15)
    falls = [earlier - later for earlier, later in pairwise(rates[9:51])]
    assert falls == pytest.approx([1 / 41] * 41, rel=1e-12)
    assert rates[49] == pytest.approx(1 / 41, rel=1e-14)
    assert rates[50] == rates[51] == 0


def test_a_run_shorter_than_its_warmup_only_rises() -> None:
    for schedule in ("paper", "linear"):
        config = TrainConfig(schedule=schedule, warmup_steps=100)
        rates = [learning_rate(step, config, d_model=64, total_steps=20) for step in range(1, 21)]
        assert rates == sorted(rates)
        assert rates[0] > 0


def test_it_is_a_pure_function_of_the_step() -> None:
    """Asked in any order, any number of times, the answer is the same: nothing to save, nothing to restore."""
    config = TrainConfig()
    forwards = [learning_rate(step, config, d_model=512, total_steps=100) for step in STEPS]
    backwards = [learning_rate(step, config, d_model=512, total_steps=100) for step in reversed(STEPS)]
    assert forwards == backwards[::-1]
