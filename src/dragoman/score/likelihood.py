"""How well a model expects a given text: loss in nats per target token, and perplexity."""

# Letters: B batch, T target length, V vocabulary.

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor


def token_loss(logits_BTV: Tensor, tgt_out_BT: Tensor, pad_id: int) -> tuple[float, int]:
    """The cross-entropy summed over target tokens, in nats, and the number of these tokens.

    Eos is a target token, padding is not. There is no label smoothing: this is the loss a perplexity is made
    of, which training with smoothing makes worse (paper, section 5.4).
    """
    loss_BT = F.cross_entropy(
        logits_BTV.float().flatten(0, 1), tgt_out_BT.flatten(), ignore_index=pad_id, reduction="none"
    )
    # Added up in double precision: a test set has more tokens than single precision has digits for.
    return float(loss_BT.double().sum()), int((tgt_out_BT != pad_id).sum())


def perplexity(loss: float) -> float:
    """exp(loss), for a loss in nats per token; infinite where that is too large for a float.

    The paper's table 3 reports it per word-piece too, so it depends on the vocabulary.
    """
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
