"""The model's forward pass over a packed batch."""

# Letters: N tokens of the side at work, M source tokens, D d_model.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.layers import AddAndNorm, DecoderLayer, EncoderLayer, FeedForward
from dragoman.model.positions import Positions
from dragoman.model.transformer import Transformer
from dragoman.train.packed.functions import (
    Drops,
    Heads,
    View,
    add_and_norm,
    dropped,
    look,
    projected,
    relu_between,
    view,
)
from dragoman.train.packed.kernels import Ids

_Added = tuple[Tensor, Tensor | None]  # what a sub-layer adds, and a bias that is still to be added to it


# Rows are filled up to a multiple of this, since a library makes its code anew for every size of a product.
_ROWS = 64


@dataclass(frozen=True, slots=True)
class Packed:
    """One side of a batch without its padding: the tokens of all sentences one after the other, and some idle rows."""

    ids_N: Tensor
    places_N: Tensor  # of each token in its sentence
    starts: Ids  # of each sentence, and the end of the last


def pack(ids_BT: Tensor, is_word_BT: Tensor, n_times: int = 1) -> Packed:
    """The words, which stand at the left of their rows; all sentences `n_times` over."""
    lens = np.tile(is_word_BT.sum(dim=1).numpy(), n_times)
    places = torch.arange(ids_BT.shape[1]).expand_as(ids_BT)[is_word_BT]
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lens)])
    n_idle = -int(starts[-1]) % _ROWS
    ids_N, places_N = (F.pad(each_N.repeat(n_times), (0, n_idle)) for each_N in (ids_BT[is_word_BT], places))
    return Packed(ids_N, places_N, starts)


def hidden_of(model: Transformer, src: Packed, tgt: Packed, drops: Drops, dtype: torch.dtype) -> Tensor:
    """What the logits of every target token are projected from, (N, D); products are made of `dtype`."""
    return _Pass(model, drops, dtype).run(src, tgt)


class _Pass:
    """One pass: the model, what it drops this time, and the type of its products."""

    def __init__(self, model: Transformer, drops: Drops, dtype: torch.dtype) -> None:
        self._model, self._drops, self._dtype = model, drops, dtype

    def run(self, src: Packed, tgt: Packed) -> Tensor:
        model = self._model
        encoder = cast("list[EncoderLayer]", list(model.encoder))
        decoder = cast("list[DecoderLayer]", list(model.decoder))

        width = model.config.n_heads * max(model.config.key_width, model.config.value_width)
        src_view, cross_view = view(src.starts, src.starts, width), view(tgt.starts, src.starts, width)
        tgt_view = view(tgt.starts, tgt.starts, width, is_causal=True)

        boxes = [box for layer in encoder for box in (layer.self_norm, layer.feed_forward_norm)]
        flow = _Flow(
            self._embed(src, model.embedding, model.src_positions), boxes, model.encoder_norm, self._drops, self._dtype
        )
        for reader in encoder:
            flow.add(self._look_at_self(reader.self_attention, flow.read, src_view))
            flow.add(self._feed_forward(reader.feed_forward, flow.read))
        memory_MD = flow.read

        boxes = [box for layer in decoder for box in (layer.self_norm, layer.cross_norm, layer.feed_forward_norm)]
        embedding = model.embedding if model.config.tie_embeddings else model.tgt_embedding
        flow = _Flow(
            self._embed(tgt, embedding, model.tgt_positions), boxes, model.decoder_norm, self._drops, self._dtype
        )
        for writer in decoder:
            flow.add(self._look_at_self(writer.self_attention, flow.read, tgt_view))
            flow.add(self._look_at_other(writer.cross_attention, flow.read, memory_MD, cross_view))
            flow.add(self._feed_forward(writer.feed_forward, flow.read))
        return flow.read[: tgt.starts[-1]]

    def _embed(self, side: Packed, embedding: nn.Embedding, positions: Positions) -> Tensor:
        x_ND = embedding(side.ids_N) * math.sqrt(self._model.config.d_model)
        placed_N1D = positions(x_ND[:, None], side.places_N[:, None])  # each token a sentence of its own
        return dropped(placed_N1D[:, 0], self._drops.next())

    def _look_at_self(self, attention: MultiHeadAttention, x_ND: Tensor, view: View) -> _Added:
        rows_NC = self._projected(x_ND, attention.query, attention.key, attention.value)
        out_NC = look(rows_NC, None, view, _heads(attention))
        return projected(out_NC, attention.output.weight, self._dtype), attention.output.bias

    def _look_at_other(self, attention: MultiHeadAttention, x_ND: Tensor, memory_MD: Tensor, view: View) -> _Added:
        q_NC = self._projected(x_ND, attention.query)
        kv_MC = self._projected(memory_MD, attention.key, attention.value)
        out_NC = look(q_NC, kv_MC, view, _heads(attention))
        return projected(out_NC, attention.output.weight, self._dtype), attention.output.bias

    def _projected(self, x_ND: Tensor, *layers: nn.Linear) -> Tensor:
        """What each layer makes of x, side by side, in one product."""
        rows_NC = projected(x_ND, torch.cat([layer.weight for layer in layers]), self._dtype)
        return rows_NC if layers[0].bias is None else rows_NC + torch.cat([layer.bias for layer in layers])

    def _feed_forward(self, layer: FeedForward, x_ND: Tensor) -> _Added:
        if layer.activation == "relu":
            inner, outer = layer.inner, layer.outer
            return relu_between(x_ND, inner.weight, inner.bias, outer.weight, self._dtype), outer.bias
        inner_NF = self._projected(x_ND, layer.inner).float()
        is_gelu = layer.activation == "gelu"
        hidden_NF = F.gelu(inner_NF) if is_gelu else F.silu(self._projected(x_ND, layer.gate).float()) * inner_NF
        return projected(hidden_NF, layer.outer.weight, self._dtype), layer.outer.bias


class _Flow:
    """What passes through a stack: the sum of all sub-layers so far, and what the next one reads of it.

    A norm always follows an addition: with post-norm that of the sub-layer which added, with pre-norm that of the next.
    What only products read is of their type at once.
    """

    def __init__(
        self, x_ND: Tensor, boxes: Sequence[AddAndNorm], last: nn.Module, drops: Drops, dtype: torch.dtype
    ) -> None:
        self._drops, self._is_pre = drops, boxes[0].is_pre
        norms = [box.norm for box in boxes]
        inside = [(norm, dtype) for norm in norms[1:]]
        self._norms = iter(
            [*inside, (cast("nn.LayerNorm", last), torch.float32)]
            if self._is_pre
            else [(norm, torch.float32) for norm in norms]
        )
        self._sum = x_ND
        self.read: Tensor = norms[0](x_ND) if self._is_pre else x_ND

    def add(self, added: _Added) -> None:
        """A sub-layer's box: dropout, addition, norm."""
        norm, dtype = next(self._norms)
        sum_ND, self.read = add_and_norm(self._sum, *added, norm, self._drops.next(), dtype)
        self._sum = sum_ND if self._is_pre else self.read


def _heads(attention: MultiHeadAttention) -> Heads:
    n, key_width = attention.n_heads, attention.key.out_features // attention.n_heads
    scale = key_width**-0.5 if attention.scale is None else attention.scale
    return Heads(n, key_width, attention.value.out_features // n, scale)
