"""How well a model expects a given text: loss in nats per target token, and perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def mean_loss(token_log_probs: Iterable[Sequence[float]]) -> float:
    """The cross-entropy in nats per target token, from the log-probabilities of the tokens of each sentence.

    Eos is a target token. There is no label smoothing: this is the loss a perplexity is made of, which training with
    smoothing makes worse (paper, section 5.4).
    """
    numbers = [number for sentence in token_log_probs for number in sentence]
    return -math.fsum(numbers) / len(numbers)


def perplexity(loss: float) -> float:
    """exp(loss), for a loss in nats per token; infinite where that is too large for a float.

    The paper's table 3 reports it per word-piece too, so it depends on the vocabulary.
    """
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
