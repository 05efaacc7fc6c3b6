"""Batches made up on the spot, and models small enough to learn from them in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dragoman.batches.batch import Batch, pad_sequences
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

PAD, BOS, EOS, FIRST_WORD = 0, 2, 3, 4
VOCAB_SIZE = 16


def make_model(seed: int = 0, **changes: Any) -> Transformer:
    shape = {
        "vocab_size": VOCAB_SIZE, "d_model": 16, "d_ff": 32, "n_heads": 2, "n_encoder_layers": 1,
        "n_decoder_layers": 1, "dropout": 0.0, "max_len_tokens": 16,
    }  # fmt: skip
    torch.manual_seed(seed)
    return Transformer(ModelConfig(**{**shape, **changes}))


def batch_of(pairs: Sequence[tuple[list[int], list[int]]], first_index: int = 0) -> Batch:
    """The batch of these pairs, given without end; as `make_batch` makes it from a file."""
    tgt_out = pad_sequences([[*tgt, EOS] for _, tgt in pairs], PAD)
    tgt_in = pad_sequences([[BOS, *tgt] for _, tgt in pairs], PAD)
    return Batch(
        src_BS=pad_sequences([[*src, EOS] for src, _ in pairs], PAD),
        tgt_in_BT=tgt_in,
        tgt_out_BT=tgt_out,
        n_tgt_tokens=sum(len(tgt) + 1 for _, tgt in pairs),
        indices=np.arange(first_index, first_index + len(pairs)),
    )


def random_sentences(n: int, seed: int, *, longest: int = 6) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(FIRST_WORD, VOCAB_SIZE, rng.integers(1, longest + 1)).tolist() for _ in range(n)]


def reversed_pairs(n: int, seed: int, *, longest: int = 6) -> list[tuple[list[int], list[int]]]:
    """Sentences to be said backwards."""
    return [(words, words[::-1]) for words in random_sentences(n, seed, longest=longest)]
