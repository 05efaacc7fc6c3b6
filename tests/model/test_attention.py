"""Attention by hand, and the fused engine against the readable one."""

from __future__ import annotations

import math

import pytest
import torch
from small_models import small_config
from torch import Tensor

from dragoman.model.attention import Engine, KeyValues, MultiHeadAttention, attend
from dragoman.model.masks import causal_mask

# Rounding alone separates the engines: 2^-53 and 2^-24 relative, over sums of a dozen terms of size one.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-6}
engines = pytest.mark.parametrize("engine", ["readable", "fused"])


def make_qkv(d_k: int, d_v: int, dtype: torch.dtype = torch.float64, n_queries: int = 5) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(d_k + d_v)
    shapes = ((3, 2, n_queries, d_k), (3, 2, 7, d_k), (3, 2, 7, d_v))
    return tuple(torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)


def make_mask(kind: str) -> Tensor | None:
    padding = (torch.arange(7) < torch.tensor([7, 4, 1])[:, None])[:, None, None, :]
    causal = causal_mask(5, 7, torch.device("cpu"))
    per_head = torch.rand(3, 2, 5, 7, generator=torch.Generator().manual_seed(1)) < 0.6
    blind = padding.clone()
    blind[1] = False
    return {
        "none": None, "padding": padding, "causal": causal, "both": padding & causal, "heads": per_head,
        "blind": blind,
    }[kind]  # fmt: skip


@engines
def test_by_hand(engine: Engine) -> None:
    """The query meets one key with 0 and one with 2 ln 3; divided by sqrt(4), the weights are 1/4 and 3/4."""
    q = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]], dtype=torch.float64)
    k = torch.tensor([[[[0.0, 0.0, 0.0, 0.0], [math.log(3), 5.0, -1.0, 2.0]]]], dtype=torch.float64)
    v = torch.tensor([[[[4.0, 0.0, 8.0], [0.0, 4.0, -8.0]]]], dtype=torch.float64)
    out, weights = attend(q, k, v, None, engine=engine)
    expected = torch.tensor([[[[1.0, 3.0, -4.0]]]], dtype=torch.float64)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-14)
    if engine == "readable":
        torch.testing.assert_close(weights, torch.tensor([[[[0.25, 0.75]]]], dtype=torch.float64), rtol=0, atol=1e-15)
    else:
        assert weights is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both", "heads", "blind"])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (4, 6), (8, 3)])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_the_engines_agree(d_k: int, d_v: int, kind: str, dtype: torch.dtype, scale: float | None) -> None:
    inputs, may_see = make_qkv(d_k, d_v, dtype), make_mask(kind)
    outs = [attend(*inputs, may_see, scale=scale, engine=engine)[0] for engine in ("readable", "fused")]
    incoming = torch.linspace(-1, 1, outs[0].numel(), dtype=dtype).view_as(outs[0])
    gradients = [torch.autograd.grad(out, inputs, incoming) for out in outs]
    for one, two in zip((outs[0], *gradients[0]), (outs[1], *gradients[1]), strict=True):
        torch.testing.assert_close(one, two, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@engines
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_query_that_may_see_nothing_gets_zeros_and_sends_back_none(engine: Engine, dtype: torch.dtype) -> None:
    inputs = make_qkv(4, 6, dtype)
    out, _ = attend(*inputs, make_mask("blind"), engine=engine)
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    assert out[0].all()
    for gradient in torch.autograd.grad(out.square().sum() + out.sum(), inputs):
        assert gradient.isfinite().all()
        assert not gradient[1].any()
        assert gradient[0].any()


def test_weights_sum_to_one_where_something_is_seen_and_are_zero_where_hidden() -> None:
    q, k, v = make_qkv(4, 4)
    for kind in ("none", "padding", "causal", "both", "blind"):
        may_see = make_mask(kind)
        _, weights = attend(q, k, v, may_see, engine="readable")
        assert weights is not None
        seen = torch.ones(3, 2, 5, 7, dtype=torch.bool) if may_see is None else may_see.expand(3, 2, 5, 7)
        torch.testing.assert_close(weights.sum(-1), seen.any(-1).double(), rtol=0, atol=1e-14)
        assert not weights[~seen].any()
        assert (weights[seen] > 0).all()


@engines
def test_the_scale_is_by_the_key_width(engine: Engine) -> None:
    """1/sqrt(d_k), not of d_v or d_model: the same as unscaled attention with queries divided beforehand."""
    q, k, v = make_qkv(9, 4)
    scaled, _ = attend(q, k, v, None, engine=engine)
    unscaled, _ = attend(q / 3, k, v, None, scale=1.0, engine=engine)
    torch.testing.assert_close(scaled, unscaled, rtol=0, atol=1e-13)


@engines
def test_multi_head_attention_is_the_papers_formula(engine: Engine) -> None:
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), a head at a time."""
    torch.manual_seed(0)
    for attention_scale in (True, False):
        config = small_config(n_heads=3, d_k=5, d_v=2, attention_scale=attention_scale)
        attention = MultiHeadAttention(config).double()
        x, y = torch.randn(2, 4, 8, dtype=torch.float64), torch.randn(2, 6, 8, dtype=torch.float64)
        out, _ = attention(x, attention.keys_values(y), None, engine)
        heads = []
        for i in range(3):
            w_q, w_k = (linear.weight[5 * i : 5 * i + 5].T for linear in (attention.query, attention.key))
            w_v = attention.value.weight[2 * i : 2 * i + 2].T
            logits = (x @ w_q) @ (y @ w_k).transpose(1, 2) / (math.sqrt(5) if attention_scale else 1)
            heads.append(logits.softmax(-1) @ (y @ w_v))
        expected = torch.cat(heads, dim=-1) @ attention.output.weight.T
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


def test_key_values_append_and_select() -> None:
    def numbered(start: int) -> KeyValues:
        return KeyValues(
            torch.arange(start, start + 24.0).view(2, 2, 2, 3), torch.arange(start, start + 16.0).view(2, 2, 2, 2)
        )

    both = numbered(0).append(numbered(100))
    assert both.k_BHSK.shape == (2, 2, 4, 3)
    assert torch.equal(both.v_BHSU[:, :, :2], numbered(0).v_BHSU)
    assert torch.equal(both.k_BHSK[:, :, 2:], numbered(100).k_BHSK)
    chosen = both.select(torch.tensor([1, 1, 0]))
    assert torch.equal(chosen.k_BHSK, both.k_BHSK[[1, 1, 0]])
    assert torch.equal(chosen.v_BHSU, both.v_BHSU[[1, 1, 0]])
