"""A model without weights: a seeded random distribution for every sentence and prefix."""

# Letters: N rows, V vocabulary.

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BOS, EOS = 0, 1


@dataclass(frozen=True)
class PrefixState:
    """For each row the sentence it translates and the tokens read so far."""

    sentences: tuple[int, ...]
    prefixes: tuple[tuple[int, ...], ...]

    def select(self, rows_M: Tensor) -> PrefixState:
        rows = rows_M.tolist()
        return PrefixState(tuple(self.sentences[row] for row in rows), tuple(self.prefixes[row] for row in rows))

    def joined(self, others: PrefixState) -> PrefixState:
        return PrefixState(self.sentences + others.sentences, self.prefixes + others.prefixes)


@dataclass(frozen=True)
class PrefixModel:
    """`step` of a search. `holes` is the share of tokens that are ruled out, with log-probability -inf."""

    seed: int
    vocab_size: int
    holes: float = 0.0
    eos_bias: float = 0.0
    scale: float = 1.5  # of the logits: a large one makes the model sure of itself
    levels: int = 0  # if given, log-probabilities take only this many values: ties everywhere

    def start(self, *sentences: int) -> PrefixState:
        return PrefixState(sentences, ((),) * len(sentences))

    def __call__(self, last_ids_N: Tensor, state: PrefixState, /) -> tuple[Tensor, PrefixState]:
        pairs = zip(state.prefixes, last_ids_N.tolist(), strict=True)
        state = PrefixState(state.sentences, tuple((*prefix, last) for prefix, last in pairs))
        # A row begins with bos, never meets it again, and is not asked again once it has ended.
        assert all(prefix[0] == BOS and EOS not in prefix for prefix in state.prefixes)
        rows = [self.log_probs(*key) for key in zip(state.sentences, state.prefixes, strict=True)]
        return torch.tensor(np.stack(rows)), state

    def log_probs(self, sentence: int, prefix: tuple[int, ...]) -> np.ndarray:
        """log p(next | prefix); the prefix begins with bos."""
        return _log_probs(self, sentence, prefix)

    def forced(self, sentence: int, ids: tuple[int, ...]) -> list[float]:
        """The log-probability of each token of the sequence and of its end."""
        prefixes = [(BOS, *ids[:n]) for n in range(len(ids) + 1)]
        return [
            float(self.log_probs(sentence, prefix)[token]) for prefix, token in zip(prefixes, (*ids, EOS), strict=True)
        ]


@functools.lru_cache(maxsize=100_000)
def _log_probs(model: PrefixModel, sentence: int, prefix: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng([model.seed, sentence, *prefix])
    logits = model.scale * rng.normal(size=model.vocab_size)
    if model.levels:
        logits = rng.integers(model.levels, size=model.vocab_size).astype(float)
    logits[EOS] += model.eos_bias
    is_hole = rng.random(model.vocab_size) < model.holes
    is_hole[rng.integers(model.vocab_size)] = False  # a distribution has somewhere to go
    logits[is_hole] = -np.inf
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
