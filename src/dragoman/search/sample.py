"""Sampling: tokens drawn from the model's distribution, possibly sharpened and cut short."""

# Letters: N rows that have not ended, V vocabulary, K candidates of a row.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.search.follow import follow
from dragoman.search.step import Hypothesis, S, SearchConfig, Step
from dragoman.search.top import top


def sample_search(
    step: Step[S],
    state: S,
    *,
    max_lens: Sequence[int],
    bos_id: int,
    eos_id: int,
    length_penalty: float,
    indices: Sequence[int],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    n_samples: int = 1,
) -> list[list[Hypothesis]]:
    """`n_samples` hypotheses drawn for each sentence, best score first; the same one may be drawn twice.

    The state has one row per sentence, and `indices` says which sentence of the whole input each row is:
    every (seed, index, sample) has random numbers of its own, so that a draw depends neither on the
    batch nor on the order of the input. Each token comes from the distribution p ** (1 / temperature),
    of which the `top_k` most probable tokens are kept (0 keeps all), and of those, rescaled, the fewest
    that together reach a probability of `top_p`. What a hypothesis reports are the model's own
    log-probabilities, whatever it was drawn from.
    """
    SearchConfig(length_penalty=length_penalty)  # refuses what a run file may not say either
    _check(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed, n_samples=n_samples)
    lens = [max_len for max_len in max_lens for _ in range(n_samples)]
    streams = [(index, sample) for index in indices for sample in range(n_samples)]
    # One number for each token and one for the end.
    uniforms = [_uniforms(seed, stream, max_len + 1) for stream, max_len in zip(streams, lens, strict=True)]

    def choose(log_probs_NV: Tensor, rows: list[int], n_tokens: int) -> Tensor:
        uniform_N = [uniforms[row][n_tokens] for row in rows]
        return draw(
            log_probs_NV,
            torch.tensor(uniform_N, dtype=torch.float64, device=log_probs_NV.device),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )

    found = follow(
        step,
        state.select(torch.arange(len(max_lens)).repeat_interleave(n_samples)),
        choose,
        max_lens=lens,
        bos_id=bos_id,
        eos_id=eos_id,
        length_penalty=length_penalty,
    )
    groups = [found[start : start + n_samples] for start in range(0, len(found), n_samples)]
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def draw(log_probs_NV: Tensor, uniform_N: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """The token of each row at which the cumulative probability of those kept exceeds `uniform_N`."""
    log_probs_NK = log_probs_NV.double()
    id_NK = torch.arange(log_probs_NV.shape[1], device=log_probs_NV.device).expand_as(log_probs_NV)
    if top_k or top_p < 1:  # otherwise all are kept, and sorting them would be most of the work
        log_probs_NK, id_NK = top(log_probs_NK, top_k or log_probs_NV.shape[1])
    # The largest becomes 0 first: at a very low temperature the quotients would all be -inf.
    probs_NK = ((log_probs_NK - log_probs_NK.amax(dim=1, keepdim=True)) / temperature).softmax(dim=1)
    if top_p < 1:
        before_NK = probs_NK.cumsum(dim=1) - probs_NK
        probs_NK = probs_NK.masked_fill(before_NK >= top_p, 0.0)
    cumulative_NK = probs_NK.cumsum(dim=1)
    whole_N1 = cumulative_NK[:, -1:]
    # A product that rounds up to the whole would point behind the last candidate.
    goal_N1 = (uniform_N[:, None] * whole_N1).minimum(whole_N1.nextafter(torch.zeros_like(whole_N1)))
    return id_NK.gather(1, torch.searchsorted(cumulative_NK, goal_N1, right=True))[:, 0]


def _uniforms(seed: int, stream: tuple[int, int], n: int) -> list[float]:
    """The first n numbers in [0, 1) of a stream; asking for more does not change the first ones."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
    numbers: list[float] = rng.random(n).tolist()
    return numbers


def _check(*, temperature: float, top_k: int, top_p: float, seed: int, n_samples: int) -> None:
    if not 0 < temperature < float("inf"):
        raise ConfigError(
            f"temperature={temperature} is not a positive number",
            hint="use 1 for the model's own distribution, less for safer output; for none, search greedily",
        )
    if top_k < 0:
        raise ConfigError(f"top_k={top_k} is negative", hint="use 0 to keep every token, or 1 and more")
    if not 0 < top_p <= 1:
        raise ConfigError(f"top_p={top_p} is not a probability above 0", hint="use 1 to keep every token, or 0.9")
    if seed < 0:
        raise ConfigError(f"seed={seed} is negative", hint="use 0 or more")
    if n_samples < 1:
        raise ConfigError(f"n_samples={n_samples} draws nothing", hint="use 1 or more")
