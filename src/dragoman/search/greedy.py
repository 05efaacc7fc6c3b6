"""Greedy search: the most probable token, then the most probable one after it."""

# Letters: N rows that have not ended, V vocabulary.

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from dragoman.search.follow import follow
from dragoman.search.step import Hypothesis, S, SearchConfig, Step


def greedy_search(
    step: Step[S],
    state: S,
    *,
    max_lens: Sequence[int],
    bos_id: int,
    eos_id: int,
    length_penalty: float,
) -> list[Hypothesis]:
    """One hypothesis per sentence, the same as `beam_search` finds with a beam of 1, at less cost.

    The state has one row per sentence. Of equally probable tokens the one with the lower id is taken. The
    length penalty does not steer this search; it only gives the hypotheses comparable scores.
    """
    SearchConfig(length_penalty=length_penalty)  # refuses what a run file may not say either
    return follow(
        step,
        state,
        _most_probable,
        max_lens=max_lens,
        bos_id=bos_id,
        eos_id=eos_id,
        length_penalty=length_penalty,
    )


def greedy_tokens(step: Step[S], state: S, *, max_len: int, bos_id: int, eos_id: int) -> Iterator[int]:
    """The ids that `greedy_search` finds for one sentence, each as soon as it is chosen."""
    token_id = bos_id
    for _ in range(max_len):
        with torch.inference_mode():
            log_probs_1V, state = step(torch.tensor([token_id]), state)
            token_id = int(_most_probable(log_probs_1V, [0], 0))
        if token_id == eos_id:
            return
        yield token_id


def _most_probable(log_probs_NV: Tensor, rows: list[int], n_tokens: int) -> Tensor:
    return log_probs_NV.argmax(dim=1)
