"""What a translator needs of an engine. Ids are of subwords, without bos and eos; no sentence is empty."""

# Letters: L layers, H heads, S source length, T target length.

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dragoman.search.step import Constraints, Hypothesis, Sampling, SearchConfig

Ids = Sequence[int]


class Weights(NamedTuple):
    """The attention of every layer and head (L, H, ·, ·) while a target is produced: rows look at columns."""

    encoder: np.ndarray  # (L, H, S, S)
    decoder: np.ndarray  # (L, H, T, T)
    cross: np.ndarray  # (L, H, T, S)


class Engine(Protocol):
    """A model with its search."""

    can_look_inside: bool  # whether it also samples and explains
    n_at_once: int  # searches that it can do side by side, so that none waits for the end of another

    def search(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, *,
        nbest: int, batch_tokens: int, token_log_probs: bool = False,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """The `nbest` best hypotheses of each sentence, best first, in the order of the sentences.

        The log-probabilities of their tokens are there if asked for; where they cost nothing, always.
        """

    def tokens(self, src_ids: Ids, search: SearchConfig, constraints: Constraints) -> Iterator[int]:
        """What `search` finds for one sentence with a beam of 1, each token as soon as it is chosen."""

    def token_log_probs(
        self, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids], *, batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """The log-probability of each target token, and of the end, in the order of the sentences."""


class OpenEngine(Engine, Protocol):
    """An engine that can be looked into."""

    def sample(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, sampling: Sampling, *,
        n_samples: int, numbers: Sequence[int], batch_tokens: int,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """Hypotheses drawn at random; `numbers` are those of the sentences in the whole input."""

    def explain(self, src_ids: Ids, tgt_ids: Ids) -> Weights:
        """The attention that produces the target and its end."""


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """The rows of sentences, alike in length, at most `batch_tokens` padded tokens at a time."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if rows and (len(rows) + 1) * lengths[rows[0]] > batch_tokens:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def n_cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
