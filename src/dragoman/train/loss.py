"""The training loss: cross-entropy against smoothed labels, paper section 5.4."""

# Letters: N tokens, V vocabulary.

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def smoothed_cross_entropy(logits_NV: Tensor, tgt_out_N: Tensor, *, label_smoothing: float, pad_id: int) -> Tensor:
    """The sum over words (not padding) of −Σ_k q(k) ln p(k), in nats, where q(k) = (1 − ε)·[k = y] + ε / V.

    The smoothing mass is spread over all V entries, the true one included, as in Szegedy et al. 2015, whom the
    paper follows. Others differ without saying so: tensor2tensor and fairseq spread it over V − 1 entries,
    JoeyNMT and OpenNMT-py over V − 2 (neither the true entry nor padding). A caller divides by the number of
    target tokens of the whole update, once.
    """
    return F.cross_entropy(logits_NV, tgt_out_N, ignore_index=pad_id, label_smoothing=label_smoothing, reduction="sum")
