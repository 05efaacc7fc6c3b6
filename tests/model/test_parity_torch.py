"""Our layers against torch.nn's, an independent implementation, with the same weights: values and gradients.

In double precision the two differ by rounding alone, far below the 1e-10 asked for.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from small_models import BOS, PAD, scatter, sentences, small_config, small_model
from torch import Tensor, nn

from dragoman.model.attention import Engine, MultiHeadAttention
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import causal_mask, padding_mask
from dragoman.model.positions import sinusoids

TOLERANCE = {"rtol": 0.0, "atol": 1e-10}
Twins = list[tuple[list[nn.Parameter], nn.Parameter]]  # ours, which put together are theirs

variants = pytest.mark.parametrize(
    ("norm", "activation", "engine"), list(itertools.product(("post", "pre"), ("relu", "gelu"), ("fused", "readable")))
)


def attention_twins(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Twins:
    inputs = (ours.query, ours.key, ours.value)
    return [
        ([linear.weight for linear in inputs], theirs.in_proj_weight),
        ([linear.bias for linear in inputs], theirs.in_proj_bias),
        ([ours.output.weight], theirs.out_proj.weight),
        ([ours.output.bias], theirs.out_proj.bias),
    ]


def module_twins(ours: nn.Module, theirs: nn.Module) -> Twins:
    return [([one], other) for one, other in zip(ours.parameters(), theirs.parameters(), strict=True)]


def layer_twins(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> Twins:
    norms = [ours.self_norm, ours.feed_forward_norm]
    twins = attention_twins(ours.self_attention, theirs.self_attn)
    if isinstance(ours, DecoderLayer):
        norms.insert(1, ours.cross_norm)
        twins += attention_twins(ours.cross_attention, theirs.multihead_attn)
    twins += module_twins(ours.feed_forward.inner, theirs.linear1)
    twins += module_twins(ours.feed_forward.outer, theirs.linear2)
    for norm, number in zip(norms, itertools.count(1)):
        twins += module_twins(norm.norm, getattr(theirs, f"norm{number}"))
    return twins


@torch.no_grad()
def copy_weights(twins: Twins, ours: nn.Module, theirs: nn.Module) -> None:
    """Gives them our weights, after a check that none is forgotten on either side."""
    assert {p for parts, _ in twins for p in parts} == set(ours.parameters())
    assert {p for _, p in twins} == set(theirs.parameters())
    for parts, other in twins:
        other.copy_(torch.cat(parts))


def assert_same_gradients(twins: Twins) -> None:
    for parts, other in twins:
        torch.testing.assert_close(torch.cat([p.grad for p in parts]), other.grad, **TOLERANCE)
        assert other.grad.any()


def backward(out: Tensor) -> None:
    """Sends back a gradient in which no two elements are alike."""
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).cos().view_as(out))


def double_input(*shape: int) -> tuple[Tensor, Tensor]:
    values = torch.randn(*shape, dtype=torch.float64)
    return values.clone().requires_grad_(), values.clone().requires_grad_()


@variants
def test_encoder_layer(norm: str, activation: str, engine: Engine) -> None:
    torch.manual_seed(1)
    config = small_config(norm=norm, activation=activation, attention_bias=True)
    ours = EncoderLayer(config).double()
    scatter(ours)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    twins = layer_twins(ours, theirs)
    copy_weights(twins, ours, theirs)
    x, y = double_input(3, 6, 8)
    is_padding = torch.arange(6) >= torch.tensor([6, 4, 1])[:, None]

    out, _ = ours(x, ~is_padding[:, None, None, :], engine)
    expected = theirs(y, src_key_padding_mask=is_padding)
    torch.testing.assert_close(out, expected, **TOLERANCE)
    backward(out)
    backward(expected)
    torch.testing.assert_close(x.grad, y.grad, **TOLERANCE)
    assert_same_gradients(twins)


@variants
def test_decoder_layer(norm: str, activation: str, engine: Engine) -> None:
    torch.manual_seed(2)
    config = small_config(norm=norm, activation=activation, attention_bias=True)
    ours = DecoderLayer(config).double()
    scatter(ours)
    theirs = nn.TransformerDecoderLayer(
        8, 2, 12, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    twins = layer_twins(ours, theirs)
    copy_weights(twins, ours, theirs)
    x, y = double_input(3, 5, 8)
    memory, their_memory = double_input(3, 6, 8)
    is_padding = torch.arange(6) >= torch.tensor([6, 4, 1])[:, None]
    may_see = causal_mask(5, 5, x.device)

    kv = ours.cross_attention.keys_values(memory)
    out, present, _ = ours(x, None, kv, may_see, ~is_padding[:, None, None, :], engine)
    expected = theirs(y, their_memory, tgt_mask=~may_see[0, 0], memory_key_padding_mask=is_padding)
    torch.testing.assert_close(out, expected, **TOLERANCE)
    assert present.k_BHSK.shape == (3, 2, 5, 4)
    backward(out)
    backward(expected)
    torch.testing.assert_close(x.grad, y.grad, **TOLERANCE)
    torch.testing.assert_close(memory.grad, their_memory.grad, **TOLERANCE)
    assert_same_gradients(twins)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_whole_model(norm: str) -> None:
    """Both stacks in nn.Transformer, with the paper's embeddings around them written out here."""
    ours = small_model(3, norm=norm, attention_bias=True, n_decoder_layers=3)
    kind = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    theirs = nn.Transformer(
        d_model=8,
        nhead=2,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 12, **kind),
            2,
            nn.LayerNorm(8, dtype=torch.float64) if norm == "pre" else None,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(8, 2, 12, **kind),
            3,
            nn.LayerNorm(8, dtype=torch.float64) if norm == "pre" else None,
        ),
        batch_first=True,
    )
    theirs.embedding = nn.Embedding(17, 8, dtype=torch.float64)
    twins = module_twins(ours.embedding, theirs.embedding)
    for stack in ("encoder", "decoder"):
        for layer, other in zip(getattr(ours, stack), getattr(theirs, stack).layers, strict=True):
            twins += layer_twins(layer, other)
        if norm == "pre":
            twins += module_twins(getattr(ours, f"{stack}_norm"), getattr(theirs, stack).norm)
    copy_weights(twins, ours, theirs)

    src = sentences(3, 6, seed=4)
    src[1, 4:], src[2, 1:] = PAD, PAD
    tgt = sentences(3, 5, seed=5)
    tgt[:, 0] = BOS

    def embed(ids: Tensor) -> Tensor:
        # Our table is stored in single precision, whatever the precision of the weights.
        return theirs.embedding(ids) * math.sqrt(8) + sinusoids(ids.shape[1], 8).float().double()

    is_padding = ~padding_mask(src, PAD)[:, 0, 0]
    hidden = theirs(
        embed(src),
        embed(tgt),
        src_key_padding_mask=is_padding,
        memory_key_padding_mask=is_padding,
        tgt_mask=~causal_mask(5, 5, src.device)[0, 0],
    )
    expected = hidden @ theirs.embedding.weight.T
    logits = ours(src, tgt)
    torch.testing.assert_close(logits, expected, **TOLERANCE)
    backward(logits)
    backward(expected)
    assert_same_gradients(twins)
