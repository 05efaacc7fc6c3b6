"""The pace of a run: how far along it is, and how it lands when its time is up."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from dragoman.train.config import TrainConfig
from dragoman.train.pace import Pacer, change_pace, even_pace, last_step, share_done
from dragoman.train.schedule import learning_rate


def test_an_even_pace_is_a_straight_line_from_the_warmup_to_just_after_the_last_step() -> None:
    pace = even_pace(10, 50)
    assert last_step(pace) == 50
    shares = [share_done(step, pace) for step in range(10, 52)]
    assert shares[0] == 0
    assert shares[-1] == 1
    rises = [later - earlier for earlier, later in pairwise(shares)]
    assert rises == pytest.approx([1 / 41] * 41, rel=1e-12)
    assert share_done(3, pace) == 0
    assert share_done(99, pace) == 1


def test_a_change_of_pace_keeps_what_was_and_bends_what_comes() -> None:
    pace = even_pace(10, 110)
    changed = change_pace(change_pace(pace, 40, 90), 60, 200)
    assert last_step(changed) == 200
    for step in range(1, 41):
        assert share_done(step, changed) == pytest.approx(share_done(step, pace), rel=1e-12)
    shares = [share_done(step, changed) for step in range(1, 202)]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for start, end in ((40, 60), (60, 201)):
        assert share_done((start + end) // 2, changed) < share_done(end, changed)
    TrainConfig(steps=200, pace=changed)  # a run's settings can say it


def test_a_change_during_the_warmup_moves_only_the_end() -> None:
    assert change_pace(even_pace(10, 110), 5, 60) == even_pace(10, 60)


def test_a_change_at_the_same_step_again_replaces_the_one_before() -> None:
    once = change_pace(even_pace(10, 110), 40, 90)
    assert change_pace(once, 40, 70)[:-1] == once[:-1]
    assert last_step(change_pace(once, 40, 70)) == 70


def test_the_end_is_never_behind() -> None:
    assert last_step(change_pace(even_pace(10, 110), 40, 12)) == 40


def test_the_rate_falls_to_zero_at_whatever_pace() -> None:
    config = TrainConfig(schedule="linear", lr=1.0, warmup_steps=10)
    pace = change_pace(change_pace(even_pace(10, 110), 40, 90), 60, 200)
    rates = [learning_rate(step, config, d_model=64, total_steps=200, pace=pace) for step in range(10, 202)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1
    assert rates[-1] == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_run_on_an_unsteady_machine_lands_within_two_percent(seed: int) -> None:
    """Steps of changing speed, pauses of unknown length and a first plan that is wrong by half either way."""
    rng = random.Random(seed)
    budget_s, per_step_s, pause_s = 600.0, 0.1, rng.uniform(0.5, 3.0)
    planned = int(budget_s / per_step_s * rng.uniform(0.5, 1.5))
    valid_every, pacer, pace = planned // 10, Pacer(budget_s), even_pace(100, planned)
    elapsed = rng.uniform(5, 20)
    paused, step, speed, known_s = 0.0, 0, 1.0, 0.004 * budget_s
    while step < last_step(pace):
        step += 1
        if step % 500 == 0:
            speed = rng.uniform(0.7, 1.3)  # somebody else uses the machine, or stops doing so
        elapsed += per_step_s * speed * rng.uniform(0.9, 1.1)
        n_left = last_step(pace) // valid_every - step // valid_every
        end = pacer.look(step, elapsed, paused, known_s * (n_left + 5) + 1.5)
        if end is not None:
            pace = change_pace(pace, step, end)
        if step % valid_every == 0:
            known_s = pause_s * rng.uniform(0.8, 1.2)
            elapsed, paused = elapsed + known_s, paused + known_s
    elapsed += 5 * pause_s * rng.uniform(0.8, 1.2) + 1.5  # the end: validating, choosing, scoring, writing
    assert abs(elapsed - budget_s) < 0.02 * budget_s
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(pace))
