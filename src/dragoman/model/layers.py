"""Encoder and decoder layers: paper figure 1 and sections 3.1 and 3.3."""

# Letters: B batch, T target (query) length, S source (key) length, D d_model, F d_ff.

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.attention import Engine, KeyValues, MultiHeadAttention
from dragoman.model.config import ModelConfig


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2: paper section 3.3, equation 2. GELU and SwiGLU are named options."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        if self.activation == "swiglu":
            self.gate = nn.Linear(config.d_model, config.d_ff)

    def forward(self, x_BTD: Tensor) -> Tensor:
        inner_BTF = self.inner(x_BTD)
        if self.activation == "relu":
            inner_BTF = F.relu(inner_BTF, inplace=True)
        elif self.activation == "gelu":
            inner_BTF = F.gelu(inner_BTF)
        else:
            inner_BTF = F.silu(self.gate(x_BTD)) * inner_BTF
        return self.outer(inner_BTF)


class AddAndNorm(nn.Module):
    """The figure's "Add & Norm" box around a sub-layer, with the paper's dropout on the sub-layer's output.

    Paper (post): LayerNorm(x + Dropout(Sublayer(x))). Option (pre): x + Dropout(Sublayer(LayerNorm(x))),
    because deep or briefly warmed-up models train more safely so. The epsilon is PyTorch's 1e-5: the paper has none.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def before(self, x_BTD: Tensor) -> Tensor:
        """What the sub-layer reads."""
        return self.norm(x_BTD) if self.is_pre else x_BTD

    def after(self, x_BTD: Tensor, sublayer_BTD: Tensor) -> Tensor:
        """What goes on to the next sub-layer."""
        sum_BTD = x_BTD + self.dropout(sublayer_BTD)
        return sum_BTD if self.is_pre else self.norm(sum_BTD)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.self_norm = AddAndNorm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = AddAndNorm(config)

    def forward(self, x_BSD: Tensor, may_see: Tensor | None, engine: Engine) -> tuple[Tensor, Tensor | None]:
        """The layer's output and its attention weights, if the engine forms them."""
        h_BSD = self.self_norm.before(x_BSD)
        h_BSD, weights = self.self_attention(*self.self_attention.queries_keys_values(h_BSD), may_see, engine)
        x_BSD = self.self_norm.after(x_BSD, h_BSD)

        h_BSD = self.feed_forward(self.feed_forward_norm.before(x_BSD))
        return self.feed_forward_norm.after(x_BSD, h_BSD), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, then attention over the encoder's output, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.self_norm = AddAndNorm(config)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_norm = AddAndNorm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = AddAndNorm(config)

    def forward(
        self,
        x_BTD: Tensor,
        past: KeyValues | None,
        memory: KeyValues,
        tgt_may_see: Tensor | None,
        src_may_see: Tensor | None,
        engine: Engine,
    ) -> tuple[Tensor, KeyValues, tuple[Tensor | None, Tensor | None]]:
        """The layer's output, the keys and values to remember, and the weights of both attentions."""
        h_BTD = self.self_norm.before(x_BTD)
        q_BHTK, present = self.self_attention.queries_keys_values(h_BTD)
        if past is not None:
            present = past.append(present)
        h_BTD, self_weights = self.self_attention(q_BHTK, present, tgt_may_see, engine)
        x_BTD = self.self_norm.after(x_BTD, h_BTD)

        h_BTD = self.cross_norm.before(x_BTD)
        h_BTD, cross_weights = self.cross_attention(self.cross_attention.queries(h_BTD), memory, src_may_see, engine)
        x_BTD = self.cross_norm.after(x_BTD, h_BTD)

        h_BTD = self.feed_forward(self.feed_forward_norm.before(x_BTD))
        return self.feed_forward_norm.after(x_BTD, h_BTD), present, (self_weights, cross_weights)
