"""How much arithmetic an update cannot do without.

Letters: B batch, S source length, T target length, D d_model, F d_ff, V vocabulary, N layers.
"""

from __future__ import annotations

import numpy as np

from benchmarks.train_speed.workers.protocol import PAD_ID, Batch, Size


def update_flops(size: Size, vocab_size: int, batch: Batch) -> float:
    """Floating-point operations of the matrix products in one update, on the tokens that are not padding.

    A product of (m, k) and (k, n) is 2mkn operations. Forward, for a pair of s source and t target tokens:

        encoder layer      2 s (4 D D + 2 D F)  +  4 s s D         projections and feed-forward; q k' and weights v
        decoder layer      2 t (4 D D + 2 D F)  +  4 t t D         likewise (a causal kernel may do half of t t)
          cross-attention  2 (2 t + 2 s) D D    +  4 t s D         q and output on t, k and v on s
        output             2 t D V

    The backward pass has two products for each of these, so an update is 3 times the forward pass.
    """
    D, F, _, N = size
    s, t = ((ids != PAD_ID).sum(dim=1).numpy().astype(np.float64) for ids in (batch.src_BS, batch.tgt_out_BT))
    dense = 4 * D * D + 2 * D * F
    encoder = 2 * s * dense + 4 * s * s * D
    decoder = 2 * t * dense + 4 * t * t * D + 4 * (t + s) * D * D + 4 * t * s * D
    return float(3 * (N * (encoder + decoder) + 2 * t * D * vocab_size).sum())
