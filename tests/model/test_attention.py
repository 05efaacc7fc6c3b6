"""Attention by hand, and the fused engine against the readable one, whichever way it takes."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from small_models import small_config
from torch import Tensor

from dragoman.model.attention import _LANES, _SHORT, Engine, KeyValues, MultiHeadAttention, _ShortSoftmax, attend
from dragoman.model.masks import causal_mask

# Rounding alone separates the engines: 2^-53 and 2^-24 relative, over sums of a dozen terms of size one.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-6}
engines = pytest.mark.parametrize("engine", ["readable", "fused"])


def make_qkv(d_k: int, d_v: int, dtype: torch.dtype = torch.float64, n_keys: int = 7) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(d_k + d_v)
    shapes = ((3, 2, 5, d_k), (3, 2, n_keys, d_k), (3, 2, n_keys, d_v))
    return tuple(torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)


def make_mask(kind: str, n_keys: int = 7) -> Tensor | None:
    padding = (torch.arange(n_keys) < torch.tensor([n_keys, (n_keys + 1) // 2, 1])[:, None])[:, None, None, :]
    causal = causal_mask(5, n_keys, torch.device("cpu"))
    per_head = torch.rand(3, 2, 5, n_keys, generator=torch.Generator().manual_seed(1)) < 0.6
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


def plain(q: Tensor, k: Tensor, v: Tensor, may_see: Tensor | None) -> Tensor:
    """The equation in operations of PyTorch's that attention itself does not use."""
    if may_see is None:
        may_see = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    powers = (torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(q.shape[-1])).exp() * may_see
    return torch.einsum("bhts,bhsu->bhtu", powers / powers.sum(-1, keepdim=True).clamp(min=1e-300), v)


@engines
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both", "heads", "blind"])
@pytest.mark.parametrize("n_keys", [1, 2, _LANES - 1, _LANES, _SHORT, _SHORT + 1, 100])
def test_on_both_sides_of_each_change_of_method(n_keys: int, kind: str, engine: Engine) -> None:
    """Short rows have a softmax of their own, and the fused engine is the equation up to a certain length."""
    inputs, may_see = make_qkv(4, 6, n_keys=n_keys), make_mask(kind, n_keys)
    out, weights = attend(*inputs, may_see, engine=engine)
    assert (weights is None) == (engine == "fused")
    expected = plain(*inputs, may_see)
    incoming = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out)
    found = (out, *torch.autograd.grad(out, inputs, incoming))
    for one, two in zip(found, (expected, *torch.autograd.grad(expected, inputs, incoming)), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("engine", "n_keys", "dtype", "is_kernel"),
    [
        ("fused", _SHORT, torch.float32, False),
        ("fused", _SHORT + 1, torch.float32, True),
        ("fused", _SHORT + 1, torch.bfloat16, False),
        ("readable", _SHORT + 1, torch.float32, False),
    ],
)
def test_where_pytorchs_kernel_is_used(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, n_keys: int, dtype: torch.dtype, is_kernel: bool
) -> None:
    """What the test above compares are in fact different ways."""
    kernel, calls = F.scaled_dot_product_attention, []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **k: calls.append(1) or kernel(*a, **k))
    attend(*make_qkv(4, 4, dtype, n_keys), None, engine=engine)
    assert bool(calls) == is_kernel


@pytest.mark.parametrize("n", [1, 2, 15])
def test_the_softmax_of_short_rows(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    logits = (5 * torch.randn(4, 3, n, dtype=torch.float64, generator=generator)).requires_grad_()
    torch.testing.assert_close(_ShortSoftmax.apply(logits), logits.softmax(-1), rtol=1e-14, atol=1e-15)
    assert torch.autograd.gradcheck(_ShortSoftmax.apply, logits, atol=1e-8, rtol=1e-6)
    huge = torch.tensor([[1e4, -1e4, 1e4], [-math.inf, 0.0, -math.inf]])
    assert _ShortSoftmax.apply(huge).tolist() == [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]


@engines
@pytest.mark.parametrize("n_keys", [7, 30, 60])
@pytest.mark.parametrize("kind", ["none", "both", "blind"])
def test_in_bfloat16_only_products_are_rounded(engine: Engine, n_keys: int, kind: str) -> None:
    """Weights add up to one to the precision of float32, and the output is off by no more than a few times 2^-9."""
    rounded, may_see = make_qkv(8, 8, torch.bfloat16, n_keys), make_mask(kind, n_keys)
    out, weights = attend(*rounded, may_see, engine=engine)
    assert out.dtype == torch.bfloat16
    expected, _ = attend(*(tensor.double() for tensor in rounded), may_see, engine="readable")
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=0.02)
    if engine == "readable":
        assert weights is not None
        assert weights.dtype == torch.float32
        seen = torch.ones(3, 1, 1) if may_see is None else may_see.any(-1).float()
        torch.testing.assert_close(weights.sum(-1), seen.expand(3, 2, 5), rtol=0, atol=1e-6)


@engines
@pytest.mark.parametrize("n_keys", [7, 30, 60])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_query_that_may_see_nothing_gets_zeros_and_sends_back_none(
    engine: Engine, n_keys: int, dtype: torch.dtype
) -> None:
    inputs = make_qkv(4, 6, dtype, n_keys)
    out, _ = attend(*inputs, make_mask("blind", n_keys), engine=engine)
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
        out, _ = attention(attention.queries(x), attention.keys_values(y), None, engine)
        heads = []
        for i in range(3):
            w_q, w_k = (linear.weight[5 * i : 5 * i + 5].T for linear in (attention.query, attention.key))
            w_v = attention.value.weight[2 * i : 2 * i + 2].T
            logits = (x @ w_q) @ (y @ w_k).transpose(1, 2) / (math.sqrt(5) if attention_scale else 1)
            heads.append(logits.softmax(-1) @ (y @ w_v))
        expected = torch.cat(heads, dim=-1) @ attention.output.weight.T
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("attention_bias", [False, True])
def test_one_product_or_three_project_the_same(attention_bias: bool) -> None:
    """While gradients are on, queries, keys and values come out of one product; values and gradients do not change."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(small_config(n_heads=3, d_k=5, d_v=2, attention_bias=attention_bias)).double()
    x = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    leaves = [x, *(p for layer in (attention.query, attention.key, attention.value) for p in layer.parameters())]

    def all_three() -> list[Tensor]:
        q, kv = attention.queries_keys_values(x)
        return [q, *kv]

    def by_layer() -> list[Tensor]:
        layers = (attention.query, attention.key, attention.value)
        return [layer(x).view(2, 4, 3, -1).transpose(1, 2) for layer in layers]

    incoming = [torch.randn_like(tensor) for tensor in by_layer()]
    for found in (all_three(), [attention.queries(x), *attention.keys_values(x)]):
        gradients = torch.autograd.grad(found, leaves, incoming)
        expected = torch.autograd.grad(by_layer(), leaves, incoming)
        for one, two in zip((*found, *gradients), (*by_layer(), *expected), strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-13)
    with torch.no_grad():
        for one, two in zip(all_three(), by_layer(), strict=True):
            assert torch.equal(one, two)


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
