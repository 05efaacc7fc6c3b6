"""How far along a run is at each step, and how it arrives when its time is up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

Pace = Sequence[Sequence[float]]  # (step, share of the way done) at each change of pace, up to (step after the last, 1)

_LOOKS = 50  # how often, in the course of a budget, the time left is looked at


def even_pace(warmup_steps: int, total_steps: int) -> list[list[float]]:
    """One pace from the end of the warm-up to the last step."""
    return [[warmup_steps, 0.0], [max(warmup_steps, total_steps) + 1, 1.0]]


def change_pace(pace: Pace, step: int, last_step: int) -> list[list[float]]:
    """The pace so far, then evenly from `step` to `last_step`."""
    kept = [[*point] for point in pace if point[0] < step]
    if step > pace[0][0]:
        kept.append([step, share_done(step, pace)])
    return [*(kept or [[*pace[0]]]), [max(step, last_step, int(pace[0][0])) + 1, 1.0]]


def share_done(step: int, pace: Pace) -> float:
    """How much of the way after the warm-up lies behind at a step, from 0 to 1."""
    after = bisect_right([point[0] for point in pace], step)
    if after == 0:
        return 0.0
    if after == len(pace):
        return 1.0
    (start, done), (end, then) = pace[after - 1], pace[after]
    return done + (then - done) * (step - start) / (end - start)


def last_step(pace: Pace) -> int:
    """The last update of a run at this pace."""
    return int(pace[-1][0]) - 1


class Pacer:
    """Watches the time of a budget: how many more updates fit in."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._last: tuple[int, float] | None = None  # step, and seconds of training until then, at the last look

    def look(self, step: int, elapsed_s: float, paused_s: float, spared_s: float) -> int | None:
        """The step at which to end, if it is time to look.

        Of the time that has passed `paused_s` did not go to updates, and of the time to come `spared_s` will not.
        """
        if self._last is None:
            self._last = (step, elapsed_s - paused_s)
            return None
        before, then_s = self._last
        trained_s = elapsed_s - paused_s - then_s
        if trained_s < self._budget_s / _LOOKS:
            return None
        self._last = (step, elapsed_s - paused_s)
        per_step_s = trained_s / (step - before)
        return step + max(0, int((self._budget_s - elapsed_s - spared_s) / per_step_s))
