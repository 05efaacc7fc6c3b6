"""torch.nn.Transformer as a careful user writes it: fused attention, the causal hint, no mask that is not needed."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size


class _Model(nn.Module):
    def __init__(self, size: Size, vocab_size: int) -> None:
        super().__init__()
        shape: dict[str, Any] = {
            "d_model": size.d_model,
            "nhead": size.n_heads,
            "dim_feedforward": size.d_ff,
            "dropout": protocol.DROPOUT,
            "batch_first": True,
        }
        # Built by hand to leave out the norm that nn.Transformer adds after each stack, which the paper does not have.
        encoder_layer, decoder_layer = nn.TransformerEncoderLayer(**shape), nn.TransformerDecoderLayer(**shape)
        self.transformer = nn.Transformer(
            custom_encoder=nn.TransformerEncoder(encoder_layer, size.n_layers, enable_nested_tensor=False),
            custom_decoder=nn.TransformerDecoder(decoder_layer, size.n_layers),
            **shape,
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout.p = 0.0  # after the activation
        self.embedding = nn.Embedding(vocab_size, size.d_model)
        nn.init.normal_(self.embedding.weight, std=size.d_model**-0.5)
        self.dropout = nn.Dropout(protocol.DROPOUT)
        self.register_buffer("positions", _sinusoids(512, size.d_model))

    def forward(self, src: Tensor, tgt_in: Tensor, src_is_padding: Tensor, is_hidden: Tensor) -> Tensor:
        hidden = self.transformer(
            self._embed(src),
            self._embed(tgt_in),
            tgt_mask=is_hidden,
            tgt_is_causal=True,
            src_key_padding_mask=src_is_padding,
            memory_key_padding_mask=src_is_padding,
        )
        return F.linear(hidden, self.embedding.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: ids.shape[1]])


def _sinusoids(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def build(size: Size, vocab_size: int) -> Peer:
    model = _Model(size, vocab_size)
    optimizer = protocol.adam(model)

    def convert(batch: Batch) -> tuple[Tensor, ...]:
        is_hidden = nn.Transformer.generate_square_subsequent_mask(batch.tgt_in_BT.shape[1])
        return batch.src_BS, batch.tgt_in_BT, batch.src_BS == protocol.PAD_ID, is_hidden, batch.tgt_out_BT.flatten()

    def update(inputs: tuple[Tensor, ...]) -> float:
        *inputs, tgt_out = inputs
        loss = F.cross_entropy(
            model(*inputs).flatten(0, 1),
            tgt_out,
            ignore_index=protocol.PAD_ID,
            label_smoothing=protocol.LABEL_SMOOTHING,
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Peer(torch.__version__, model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
