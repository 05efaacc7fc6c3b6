"""Dragoman, through the loop, loss and optimizer that `dragoman train` uses."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch

import dragoman
from benchmarks.train_speed.workers import protocol
from dragoman import ModelConfig, Transformer
from dragoman.batches.batch import Batch
from dragoman.memory import keep_freed_memory
from dragoman.train.config import Precision, TrainConfig
from dragoman.train.loop import updates
from dragoman.train.optim import make_optimizer


def build(size: protocol.Size, vocab_size: int, precision: Precision = "float32") -> protocol.Peer:
    """With n threads, each batch is split by rows into n that make one update: the library gives each a process."""
    keep_freed_memory()
    n_parts = torch.get_num_threads()
    model = Transformer(
        ModelConfig(
            vocab_size=vocab_size,
            d_model=size.d_model,
            d_ff=size.d_ff,
            n_heads=size.n_heads,
            n_encoder_layers=size.n_layers,
            n_decoder_layers=size.n_layers,
            dropout=protocol.DROPOUT,
            pad_id=protocol.PAD_ID,
        )
    )
    config = TrainConfig(label_smoothing=protocol.LABEL_SMOOTHING, accumulate=n_parts, precision=precision)
    waiting: deque[Batch] = deque()
    batches = iter(waiting.popleft, None)
    stream = updates(model, batches, make_optimizer(model, config), lambda step: 1e-4, config, pad_id=protocol.PAD_ID)

    def convert(batch: protocol.Batch) -> list[Batch]:
        parts = (ids.tensor_split(n_parts) for ids in (batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT))
        return [
            Batch(
                src_BS=src_BS,
                tgt_in_BT=tgt_in_BT,
                tgt_out_BT=tgt_out_BT,
                n_tgt_tokens=int((tgt_out_BT != protocol.PAD_ID).sum()),
                indices=np.arange(len(src_BS)),
            )
            for src_BS, tgt_in_BT, tgt_out_BT in zip(*parts, strict=True)
        ]

    def update(parts: list[Batch]) -> float:
        waiting.extend(parts)
        return next(stream).loss

    return protocol.Peer(dragoman.__version__, model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
