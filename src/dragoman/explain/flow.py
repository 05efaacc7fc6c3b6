"""What attention amounts to over several layers."""

# Letters: L layers, H heads, T rows (queries), S columns (keys).

from __future__ import annotations

import numpy as np

from dragoman.engines.engine import Weights


def rollout(weights: Weights) -> Weights:
    """How much of each input reaches each position through all layers up to this one, (L, ·, ·).

    Attention rollout (Abnar and Zuidema 2020): heads are averaged, and half of what a sub-layer hands on is what came
    in beside it. They treat one stack. Ours for the two: what a decoder position is made of is followed back to the
    tokens written so far and, through the attention over the source and the rollout of the whole encoder, to those of
    the source; `cross` is the latter part, scaled to one. `decoder` follows the self-attention alone.
    """
    encoder = _stack(weights.encoder.mean(axis=1))
    decoder_LTT, cross_LTS = weights.decoder.mean(axis=1), weights.cross.mean(axis=1)
    source_TS, found = np.zeros(cross_LTS.shape[1:]), []
    for self_TT, cross_TS in zip(decoder_LTT, cross_LTS, strict=True):
        mixed_TT = (self_TT + np.eye(len(self_TT))) / 2
        source_TS = (mixed_TT @ source_TS + cross_TS @ encoder[-1]) / 2
        found.append(source_TS / source_TS.sum(axis=1, keepdims=True))
    return Weights(encoder=encoder, decoder=_stack(decoder_LTT), cross=np.stack(found))


def _stack(weights_LTT: np.ndarray) -> np.ndarray:
    reached_TT, found = np.eye(weights_LTT.shape[1]), []
    for weights_TT in weights_LTT:
        reached_TT = (weights_TT @ reached_TT + reached_TT) / 2
        found.append(reached_TT)
    return np.stack(found)
