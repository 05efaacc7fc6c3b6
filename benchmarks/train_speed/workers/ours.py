"""Dragoman, through the loop, loss and optimizer that `dragoman train` uses."""

from __future__ import annotations

from collections import deque
from functools import partial

import numpy as np

import dragoman
from benchmarks.train_speed.workers import protocol
from dragoman import ModelConfig, Transformer
from dragoman.batches.batch import Batch
from dragoman.memory import keep_freed_memory, start_anew_for_training
from dragoman.train.config import Precision, TrainConfig
from dragoman.train.loop import updates
from dragoman.train.optim import make_optimizer


def build(size: protocol.Size, vocab_size: int, precision: Precision) -> protocol.Peer:
    """With n threads the library splits each batch over as many processes."""
    keep_freed_memory()
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
    config = TrainConfig(label_smoothing=protocol.LABEL_SMOOTHING, precision=precision)
    waiting: deque[Batch] = deque()
    batches = iter(waiting.popleft, None)
    stream = updates(model, batches, make_optimizer(model, config), lambda step: 1e-4, config, pad_id=protocol.PAD_ID)

    def convert(batch: protocol.Batch) -> Batch:
        return Batch(
            src_BS=batch.src_BS,
            tgt_in_BT=batch.tgt_in_BT,
            tgt_out_BT=batch.tgt_out_BT,
            n_tgt_tokens=batch.n_tgt_tokens,
            indices=np.arange(len(batch.src_BS)),
        )

    def update(batch: Batch) -> float:
        waiting.append(batch)
        return next(stream).loss

    return protocol.Peer(dragoman.__version__, model, convert, update)


def main(precision: Precision = "float32") -> None:
    """The worker, started as the command starts itself."""
    start_anew_for_training()
    protocol.train(partial(build, precision=precision))


if __name__ == "__main__":
    main()
