"""Sockeye's Transformer and loss, traced as its trainer does."""

# ruff: noqa: E402 - what the peer needs to be imported at all comes before its import

from __future__ import annotations

from typing import Any

import torch

from benchmarks.old_packages import leave_out
from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size

leave_out("sacrebleu")
import sockeye
from sockeye import constants as C
from sockeye.data_io import create_batch_from_parallel_sample
from sockeye.encoder import EmbeddingConfig
from sockeye.loss import CrossEntropyLoss
from sockeye.model import ModelConfig, SockeyeModel, initialize_parameters
from sockeye.training import ModelWithLoss
from sockeye.transformer import TransformerConfig


def build(size: Size, vocab_size: int) -> Peer:
    embedding = EmbeddingConfig(vocab_size=vocab_size, num_embed=size.d_model, dropout=0.0)
    stack = TransformerConfig(
        model_size=size.d_model,
        attention_heads=size.n_heads,
        feed_forward_num_hidden=size.d_ff,
        act_type=C.RELU,
        num_layers=size.n_layers,
        dropout_attention=0.0,
        dropout_act=0.0,
        dropout_prepost=protocol.DROPOUT,
        positional_embedding_type=C.FIXED_POSITIONAL_EMBEDDING,
        preprocess_sequence="",
        postprocess_sequence="drn",  # dropout, residual, norm: post-norm
        max_seq_len_source=512,
        max_seq_len_target=512,
        depth_key_value=size.d_model,
    )
    config = ModelConfig(
        config_data=None,
        vocab_source_size=vocab_size,
        vocab_target_size=vocab_size,
        config_embed_source=embedding,
        config_embed_target=embedding,
        config_encoder=stack,
        config_decoder=stack,
        weight_tying_type=C.WEIGHT_TYING_SRC_TRG_SOFTMAX,
    )
    model = SockeyeModel(config)
    model.apply(initialize_parameters)
    model.train()
    losses = [CrossEntropyLoss(label_smoothing=protocol.LABEL_SMOOTHING, label_smoothing_impl="torch")]
    optimizer = protocol.adam(model)
    traced: list[ModelWithLoss] = []

    def convert(batch: Batch) -> Any:
        return create_batch_from_parallel_sample(*(ids[:, :, None] for ids in batch[:3]))

    def update(batch: Any) -> float:
        inputs = batch.source, batch.source_length, batch.target, batch.target_length
        if not traced:
            traced.append(ModelWithLoss(torch.jit.trace(model, inputs, strict=False), losses))
        loss, _, _ = traced[0](*inputs, batch.labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Peer(sockeye.__version__, model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
