"""The numbers training reports: their formulas, by a clock that is set by hand."""

from __future__ import annotations

import pytest

from dragoman.watch import Meter


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def read(meter: Meter, step: int, total_steps: int = 100):
    return meter.read(step, 0.5, total_steps, 3, 12.5)


def test_loss_is_the_mean_per_token_since_the_last_report() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.add(4.0, 100)
    meter.add(1.0, 300)
    clock.now += 1
    assert read(meter, 2).loss == pytest.approx((4.0 * 100 + 1.0 * 300) / 400)
    meter.add(2.5, 10)
    assert read(meter, 3).loss == 2.5


def test_speed_is_target_tokens_over_seconds_of_training() -> None:
    clock = Clock()
    meter = Meter(clock)
    clock.now += 4
    meter.add(1.0, 1000)
    with meter.paused():
        clock.now += 50
    clock.now += 1
    assert read(meter, 1).tokens_per_s == pytest.approx(1000 / 5)
    clock.now += 2
    meter.add(1.0, 600)
    assert read(meter, 2).tokens_per_s == pytest.approx(300)


def test_a_pause_before_the_first_update_of_a_report_does_not_count_either() -> None:
    clock = Clock()
    meter = Meter(clock)
    with meter.paused():
        clock.now += 7
    clock.now += 3
    meter.add(1.0, 30)
    assert read(meter, 1).tokens_per_s == pytest.approx(10)


def test_elapsed_counts_everything_earlier_sessions_included() -> None:
    clock = Clock()
    meter = Meter(clock, elapsed_s=60.0, step=10)
    clock.now += 5
    with meter.paused():
        clock.now += 15
    assert meter.elapsed() == 80
    meter.add(1.0, 1)
    assert read(meter, 20).elapsed_s == 80


def test_time_left_is_by_the_steps_of_this_session_with_their_pauses() -> None:
    """10 steps in 20 seconds, of which 15 went to validation; 80 steps like these are left."""
    clock = Clock()
    meter = Meter(clock, elapsed_s=9999.0, step=10)
    clock.now += 5
    with meter.paused():
        clock.now += 15
    meter.add(1.0, 1)
    assert read(meter, 20).eta_s == pytest.approx(20 / 10 * 80)
    clock.now += 20
    meter.add(1.0, 1)
    assert read(meter, 100).eta_s == 0


def test_the_rest_is_handed_on_and_a_stopped_clock_divides_by_no_zero() -> None:
    meter = Meter(Clock())
    meter.add(1.0, 5)
    progress = read(meter, 1)
    assert (progress.step, progress.total_steps, progress.epoch, progress.lr, progress.last_bleu) == (
        1, 100, 3, 0.5, 12.5
    )  # fmt: skip
    assert progress.tokens_per_s > 0
    assert progress.eta_s == 0
