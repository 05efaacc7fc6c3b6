"""The learning rate, a pure function of the step and of the pace: paper section 5.3, equation 3."""

from __future__ import annotations

from dragoman.train.config import TrainConfig
from dragoman.train.pace import Pace, even_pace, share_done


def learning_rate(step: int, config: TrainConfig, *, d_model: int, total_steps: int, pace: Pace | None = None) -> float:
    """The rate of update `step`, counted from 1.

    paper: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), or the same curve scaled to the peak `train.lr`.
    linear: up to the same peak, then in a straight line to zero just after the last step: a line over the share of
    the way that is done, which under a time budget is not quite one over the steps.
    """
    warmup = config.warmup_steps
    peak = config.lr if config.lr is not None else (d_model * warmup) ** -0.5
    if step <= warmup:
        return peak * step / warmup
    if config.schedule == "paper":
        return peak * (warmup / step) ** 0.5
    return peak * (1 - share_done(step, pace or even_pace(warmup, total_steps)))
