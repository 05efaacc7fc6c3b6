"""One path through the model: the loop that greedy search and sampling share."""

# Letters: N rows that have not ended, V vocabulary.

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dragoman.search.step import Hypothesis, S, Step

# The next token of each row, from log_probs_NV, the rows' places in the input and the tokens so far.
Choose = Callable[[Tensor, list[int], int], Tensor]


def follow(
    step: Step[S],
    state: S,
    choose: Choose,
    *,
    max_lens: Sequence[int],
    bos_id: int,
    eos_id: int,
    length_penalty: float,
) -> list[Hypothesis]:
    """One hypothesis for each row of the state, extended by the chosen token until that is eos.

    A row that has `max_lens[i]` tokens can only end, and the log-probability of ending is counted.
    Rows leave the batch as they end.
    """
    ids: list[list[int]] = [[] for _ in max_lens]  # eos included, once a row has ended
    token_log_probs: list[list[float]] = [[] for _ in max_lens]
    rows = list(range(len(max_lens)))
    last_ids_N = torch.full((len(rows),), bos_id)
    n_tokens = 0
    while rows:
        log_probs_NV, state = step(last_ids_N, state)
        is_full_N = torch.tensor([max_lens[row] == n_tokens for row in rows], device=log_probs_NV.device)
        last_ids_N = choose(log_probs_NV, rows, n_tokens).masked_fill(is_full_N, eos_id)
        log_prob_N = log_probs_NV.gather(1, last_ids_N[:, None])[:, 0]
        for row, token_id, log_prob in zip(rows, last_ids_N.tolist(), log_prob_N.tolist(), strict=True):
            ids[row].append(token_id)
            token_log_probs[row].append(log_prob)
        n_tokens += 1
        going = [i for i, row in enumerate(rows) if ids[row][-1] != eos_id]
        if len(going) < len(rows):
            rows = [rows[i] for i in going]
            going_N = torch.tensor(going, dtype=torch.long, device=last_ids_N.device)
            last_ids_N, state = last_ids_N[going_N], state.select(going_N)
    return [
        Hypothesis.of(path[:-1], numbers, length_penalty) for path, numbers in zip(ids, token_log_probs, strict=True)
    ]
