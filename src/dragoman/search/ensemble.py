"""Several models as one: the step that averages their probabilities."""

# Letters: N rows, V vocabulary, M chosen rows.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.search.step import Step


@dataclass(frozen=True, slots=True)
class States:
    """The state of each model."""

    each: tuple[Any, ...]

    def select(self, rows_M: Tensor) -> States:
        """That of the rows named, of each model."""
        return States(tuple(state.select(rows_M) for state in self.each))


def averaged(steps: Sequence[Step[Any]]) -> Step[States]:
    """The step whose probabilities are the mean of those of several steps over one vocabulary."""

    def step(last_ids_N: Tensor, states: States, /) -> tuple[Tensor, States]:
        answers = [one(last_ids_N, state) for one, state in zip(steps, states.each, strict=True)]
        return mean_log_prob([log_probs for log_probs, _ in answers]), States(tuple(state for _, state in answers))

    return step


def mean_log_prob(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    return torch.stack(list(log_probs)).logsumexp(dim=0) - math.log(len(log_probs))
