"""Where a search may not go: a step that rules tokens out, for any search over any model.

What is left keeps the log-probability that the model gives it: a hypothesis still has its forced-decoding score.
"""

# Letters: N rows, V vocabulary, T tokens so far, M the length of a run of tokens.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.search.step import Constraints, S, Step

_NONE = -1  # where nothing is written


@dataclass(frozen=True, slots=True)
class Path(Generic[S]):
    """The model's state, and what each row has written so far."""

    state: S
    sentence_N: Tensor  # the row's place among the sentences
    ids_NT: Tensor  # after _NONE for bos, and for as many as others have written more

    @classmethod
    def start(cls, state: S, sentences: Sequence[int]) -> Path[S]:
        """One row for each sentence, with nothing written."""
        return cls(state, torch.tensor(sentences), torch.empty(len(sentences), 0, dtype=torch.long))

    def select(self, rows_M: Tensor) -> Path[S]:
        """That of the rows named."""
        rows = rows_M.to(self.ids_NT.device)
        return Path(self.state.select(rows_M), self.sentence_N[rows], self.ids_NT[rows])

    def joined(self, others: Path[S]) -> Path[S]:
        """The rows of both."""
        parts = (self.ids_NT, others.ids_NT)
        most = max(1, *(int(_n_written(ids_NT).amax()) for ids_NT in parts))
        return Path(
            cast("Any", self.state).joined(others.state),
            torch.cat([self.sentence_N, others.sentence_N]),
            torch.cat([F.pad(ids_NT, (most - ids_NT.shape[1], 0), value=_NONE) for ids_NT in parts]),
        )


def _n_written(ids_NT: Tensor) -> Tensor:
    """n_written_N: the tokens of each row."""
    return (ids_NT != _NONE).sum(dim=1)


def constrained(step: Step[S], constraints: Constraints) -> Step[Path[S]]:
    """The step with whatever the constraints forbid at a log-probability of -inf."""
    prefixes = constraints.prefixes

    def constrained_step(last_ids_N: Tensor, path: Path[S], /) -> tuple[Tensor, Path[S]]:
        log_probs_NV, state = step(last_ids_N, path.state)
        device = log_probs_NV.device
        written_N = last_ids_N if path.ids_NT.shape[1] else torch.full_like(last_ids_N, _NONE)  # bos is not written
        ids_NT = torch.cat([path.ids_NT.to(device), written_N[:, None].to(device)], dim=1)
        allowed_NV = log_probs_NV
        if constraints.no_repeat_ngram:
            allowed_NV = _without_repeats(log_probs_NV, ids_NT, constraints.no_repeat_ngram)
        if prefixes is not None:
            allowed_NV = _along(prefixes, path.sentence_N, _n_written(ids_NT), log_probs_NV, allowed_NV)
        return allowed_NV, Path(state, path.sentence_N.to(device), ids_NT)

    return constrained_step


def _along(
    prefixes: Sequence[Sequence[int]], sentence_N: Tensor, n_tokens_N: Tensor, log_probs_NV: Tensor, allowed_NV: Tensor
) -> Tensor:
    """Only the next token of its prefix for a row that has not written all of it."""
    forced = [
        (row, prefixes[sentence][n_tokens])
        for row, (sentence, n_tokens) in enumerate(zip(sentence_N.tolist(), n_tokens_N.tolist(), strict=True))
        if n_tokens < len(prefixes[sentence])
    ]
    if not forced:
        return allowed_NV
    rows, ids = (torch.tensor(column, device=log_probs_NV.device) for column in zip(*forced, strict=True))
    result_NV = allowed_NV.clone()
    result_NV[rows] = -math.inf
    result_NV[rows, ids] = log_probs_NV[rows, ids]
    return result_NV


def _without_repeats(log_probs_NV: Tensor, ids_NT: Tensor, n: int) -> Tensor:
    """No token that would end a run of n tokens which the row has written before."""
    if ids_NT.shape[1] < n:
        return log_probs_NV
    runs_NTM = ids_NT.unfold(1, n, 1)
    begun_N1M = ids_NT[:, None, ids_NT.shape[1] - n + 1 :]
    is_again_NT = (runs_NTM[:, :, :-1] == begun_N1M).all(dim=2) & (runs_NTM[:, :, 0] != _NONE)
    rows, places = is_again_NT.nonzero(as_tuple=True)
    result_NV = log_probs_NV.clone()
    result_NV[rows, runs_NTM[rows, places, -1]] = -math.inf
    return result_NV
