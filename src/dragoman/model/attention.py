"""Attention: paper section 3.2."""

# Letters: B batch, H heads, T query length, S key length, K key width, U value width, D d_model.

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.config import ModelConfig

Engine = Literal["readable", "fused"]


def attend(
    q_BHTK: Tensor,
    k_BHSK: Tensor,
    v_BHSU: Tensor,
    may_see: Tensor | None,
    *,
    scale: float | None = None,
    engine: Engine = "fused",
) -> tuple[Tensor, Tensor | None]:
    """softmax(q k' / sqrt(d_k)) v: paper section 3.2.1, equation 1. A query that may see nothing gets zeros.

    Two engines, equal in value and gradient: "readable" is the equation and also returns its weights (B, H, T, S),
    "fused" is PyTorch's kernel, which never forms them. `may_see` None means that all may see all.
    """
    scale = 1 / math.sqrt(q_BHTK.shape[-1]) if scale is None else scale
    if engine == "fused":
        return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSU, may_see, scale=scale), None

    logits_BHTS = q_BHTK @ k_BHSK.mT * scale
    if may_see is None:
        weights_BHTS = logits_BHTS.softmax(dim=-1)
    else:
        # A row of nothing but -inf would turn to NaN and poison the gradient: let it see all, then weigh it nothing.
        sees_any = may_see.any(dim=-1, keepdim=True)
        weights_BHTS = logits_BHTS.masked_fill(~(may_see | ~sees_any), -math.inf).softmax(dim=-1) * sees_any
    return weights_BHTS @ v_BHSU, weights_BHTS


class KeyValues(NamedTuple):
    """What a sentence offers to be attended to: keys (B, H, S, K) and values (B, H, S, U)."""

    k_BHSK: Tensor
    v_BHSU: Tensor

    def append(self, later: KeyValues) -> KeyValues:
        """These, followed by later ones."""
        return KeyValues(*(torch.cat(pair, dim=2) for pair in zip(self, later, strict=True)))

    def select(self, rows: Tensor) -> KeyValues:
        """Those of the sentences named by `rows`."""
        return KeyValues(self.k_BHSK.index_select(0, rows), self.v_BHSU.index_select(0, rows))


class MultiHeadAttention(nn.Module):
    """h attentions side by side on learned projections, joined by W^O: paper section 3.2.2."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        heads, bias = config.n_heads, config.attention_bias
        self.n_heads = heads
        self.scale = None if config.attention_scale else 1.0
        self.query = nn.Linear(config.d_model, heads * config.key_width, bias=bias)
        self.key = nn.Linear(config.d_model, heads * config.key_width, bias=bias)
        self.value = nn.Linear(config.d_model, heads * config.value_width, bias=bias)
        self.output = nn.Linear(heads * config.value_width, config.d_model, bias=bias)

    def keys_values(self, x_BSD: Tensor) -> KeyValues:
        """The projected keys and values of a sentence; a cache holds these."""
        return KeyValues(self._split(self.key(x_BSD)), self._split(self.value(x_BSD)))

    def forward(
        self, x_BTD: Tensor, kv: KeyValues, may_see: Tensor | None, engine: Engine
    ) -> tuple[Tensor, Tensor | None]:
        """What each position of x gathers from `kv`, and the per-head weights where the engine forms them."""
        q_BHTK = self._split(self.query(x_BTD))
        out_BHTU, weights_BHTS = attend(q_BHTK, *kv, may_see, scale=self.scale, engine=engine)
        return self.output(out_BHTU.transpose(1, 2).flatten(2)), weights_BHTS

    def _split(self, x: Tensor) -> Tensor:
        """(B, S, H*K) to (B, H, S, K)."""
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)
