"""Attention: paper section 3.2."""

# Letters: B batch, H heads, T query length, S key length, K key width, U value width, D d_model.

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.config import ModelConfig

Engine = Literal["readable", "fused"]

_SHORT = 48  # up to this many keys, the equation as written is faster on a processor than PyTorch's fused kernel
_LANES = 16  # PyTorch's softmax takes rows shorter than this value by value, ten times as slowly


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

    Two engines, equal in value and gradient: "readable" is the equation and also returns its weights (B, H, T, S);
    "fused" returns None for them, and is PyTorch's kernel, or on a processor the equation where that is the faster of
    the two. `may_see` None means that all may see all. Products may be of bfloat16; the softmax never is.
    """
    scale = 1 / math.sqrt(q_BHTK.shape[-1]) if scale is None else scale
    if engine == "fused" and (q_BHTK.is_cuda or (q_BHTK.dtype != torch.bfloat16 and k_BHSK.shape[2] > _SHORT)):
        return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSU, may_see, scale=scale), None

    logits_BHTS = q_BHTK @ k_BHSK.mT
    if logits_BHTS.dtype == torch.bfloat16:
        logits_BHTS = logits_BHTS.float()
    logits_BHTS.mul_(scale)
    if may_see is None:
        weights_BHTS = _softmax(logits_BHTS)
    else:
        # A row of nothing but -inf would turn to NaN and poison the gradient: let it see all, then weigh it nothing.
        sees_any = may_see.any(dim=-1, keepdim=True)
        hidden = torch.zeros(may_see.shape, dtype=logits_BHTS.dtype, device=logits_BHTS.device)
        weights_BHTS = _softmax(logits_BHTS.add_(hidden.masked_fill_(~may_see & sees_any, -math.inf)))
        if sees_any.device.type != "cpu" or not sees_any.all():  # asking another device would mean waiting for it
            weights_BHTS = weights_BHTS * sees_any
    out_BHTU = weights_BHTS.to(v_BHSU.dtype) @ v_BHSU
    return out_BHTU, weights_BHTS if engine == "readable" else None


def _softmax(logits_BHTS: Tensor) -> Tensor:
    """The softmax over the keys."""
    if logits_BHTS.is_cuda or logits_BHTS.shape[-1] >= _LANES:
        return logits_BHTS.softmax(dim=-1)
    return cast("Tensor", _ShortSoftmax.apply(logits_BHTS))  # type: ignore[no-untyped-call]


class _ShortSoftmax(torch.autograd.Function):
    """The softmax of short rows, by operations that take many rows at once."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        weights = (logits - logits.amax(dim=-1, keepdim=True)).exp_()
        weights.div_(weights.sum(dim=-1, keepdim=True))
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors
        product = gradient * weights
        return product.sub_(weights * product.sum(dim=-1, keepdim=True))


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

    def queries(self, x_BTD: Tensor) -> Tensor:
        """The projected queries of a sentence."""
        return self._projected(x_BTD, self.query)[0]

    def keys_values(self, x_BSD: Tensor) -> KeyValues:
        """The projected keys and values of a sentence; a cache holds these."""
        return KeyValues(*self._projected(x_BSD, self.key, self.value))

    def queries_keys_values(self, x_BTD: Tensor) -> tuple[Tensor, KeyValues]:
        """All three, for a sentence that looks at itself."""
        q_BHTK, *kv = self._projected(x_BTD, self.query, self.key, self.value)
        return q_BHTK, KeyValues(*kv)

    def forward(
        self, q_BHTK: Tensor, kv: KeyValues, may_see: Tensor | None, engine: Engine
    ) -> tuple[Tensor, Tensor | None]:
        """What each query gathers from `kv`, and the per-head weights if the engine is the readable one."""
        out_BHTU, weights_BHTS = attend(q_BHTK, *kv, may_see, scale=self.scale, engine=engine)
        return self.output(out_BHTU.transpose(1, 2).flatten(2)), weights_BHTS

    def _projected(self, x_BSD: Tensor, *layers: nn.Linear) -> list[Tensor]:
        """What each layer makes of x, its heads apart: (B, H, S, K)."""
        if len(layers) > 1 and torch.is_grad_enabled():
            # One product for all of them: x is read once, and its gradient needs no adding up.
            weight = torch.cat([layer.weight for layer in layers])
            bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
            outputs = torch.split(F.linear(x_BSD, weight, bias), [layer.out_features for layer in layers], dim=-1)
        else:
            outputs = tuple(layer(x_BSD) for layer in layers)
        return [output.view(*output.shape[:2], self.n_heads, -1).transpose(1, 2).contiguous() for output in outputs]
