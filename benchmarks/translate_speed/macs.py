"""How much arithmetic a translation cannot do without.

Letters: D d_model, F d_ff, V vocabulary, s source tokens, t steps, b beam.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def translation_macs(
    model: Mapping[str, Any], src_tokens: Sequence[int], tgt_tokens: Sequence[int], beam: int
) -> dict[str, float]:
    """Multiply-adds of the matrix products, by part, for sentences of so many tokens, both without their ends.

    Nothing is padding, a search ends with its best translation, and its first step has one row:

        encoder      per layer   s (4 D D + 2 D F)
        memory       per layer   2 s D D                          keys and values for the cross-attention, once
        decoder      per layer   (1 + b (t - 1)) (6 D D + 2 D F)  projections, 2 of them cross, and feed-forward
        projection               (1 + b (t - 1)) D V
        attention                2 s s D per encoder layer; 2 D (s + mean length so far) per row and decoder layer

    The cross-attention is as wide as the others here. A gated feed-forward has a third matrix.
    """
    D, F, V = model["d_model"], model["d_ff"], model["vocab_size"]
    n_encoder, n_decoder = model["n_encoder_layers"], model["n_decoder_layers"]
    feed_forward = (3 if model["activation"] == "swiglu" else 2) * D * F
    parts = dict.fromkeys(("encoder", "memory", "decoder", "projection", "attention"), 0.0)
    for n_src, n_tgt in zip(src_tokens, tgt_tokens, strict=True):
        s, t = n_src + 1, n_tgt + 1
        rows = 1 + beam * (t - 1)
        parts["encoder"] += n_encoder * s * (4 * D * D + feed_forward)
        parts["memory"] += n_decoder * 2 * s * D * D
        parts["decoder"] += n_decoder * rows * (6 * D * D + feed_forward)
        parts["projection"] += rows * D * V
        parts["attention"] += n_encoder * 2 * s * s * D + n_decoder * 2 * rows * D * (s + (t + 1) / 2)
    return parts
