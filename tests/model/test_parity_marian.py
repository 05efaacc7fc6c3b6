"""The whole model against Hugging Face's Marian, an independent implementation: logits and gradients.

Marian's sinusoids stand sines first, ours (the paper's) interleaved. That is a permutation of the d_model
dimensions, which neither a LayerNorm nor a dot product can see. So we give Marian our weights with those
dimensions permuted, and the two must agree to rounding, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import transformers
from small_models import BOS, EOS, PAD, sentences, small_model
from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer

D_MODEL = 8
SINES_FIRST = torch.cat([torch.arange(0, D_MODEL, 2), torch.arange(1, D_MODEL, 2)])
TOLERANCE = {"rtol": 0.0, "atol": 1e-10}
Twin = tuple[nn.Parameter, nn.Parameter, int | None]  # ours, Marian's, and which of its axes is d_model


def make_marian(n_encoder_layers: int, n_decoder_layers: int) -> nn.Module:
    config = transformers.MarianConfig(
        vocab_size=17,
        d_model=D_MODEL,
        encoder_layers=n_encoder_layers,
        decoder_layers=n_decoder_layers,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=12,
        decoder_ffn_dim=12,
        activation_function="relu",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=32,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        # Not the padding, as is Marian's habit: Hugging Face drops the gradient of that row's embedding.
        decoder_start_token_id=BOS,
        attn_implementation="eager",
    )
    model = transformers.MarianMTModel(config).double()
    assert not model.final_logits_bias.any()
    assert model.lm_head.weight is model.model.shared.weight
    return model


def twins(ours: Transformer, marian: nn.Module) -> Iterator[Twin]:
    yield ours.embedding.weight, marian.model.shared.weight, 1
    for stack in ("encoder", "decoder"):
        for layer, other in zip(getattr(ours, stack), getattr(marian.model, stack).layers, strict=True):
            yield from attention_twins(layer.self_attention, other.self_attn)
            yield from norm_twins(layer.self_norm.norm, other.self_attn_layer_norm)
            if stack == "decoder":
                yield from attention_twins(layer.cross_attention, other.encoder_attn)
                yield from norm_twins(layer.cross_norm.norm, other.encoder_attn_layer_norm)
            yield layer.feed_forward.inner.weight, other.fc1.weight, 1
            yield layer.feed_forward.inner.bias, other.fc1.bias, None
            yield layer.feed_forward.outer.weight, other.fc2.weight, 0
            yield layer.feed_forward.outer.bias, other.fc2.bias, 0
            yield from norm_twins(layer.feed_forward_norm.norm, other.final_layer_norm)


def attention_twins(ours: MultiHeadAttention, other: nn.Module) -> Iterator[Twin]:
    for one, two in ((ours.query, other.q_proj), (ours.key, other.k_proj), (ours.value, other.v_proj)):
        yield one.weight, two.weight, 1
        yield one.bias, two.bias, None
    yield ours.output.weight, other.out_proj.weight, 0
    yield ours.output.bias, other.out_proj.bias, 0


def norm_twins(ours: nn.LayerNorm, other: nn.LayerNorm) -> Iterator[Twin]:
    yield ours.weight, other.weight, 0
    yield ours.bias, other.bias, 0


def permuted(values: Tensor, axis: int | None) -> Tensor:
    return values if axis is None else values.index_select(axis, SINES_FIRST)


@pytest.mark.parametrize(("n_encoder_layers", "n_decoder_layers"), [(2, 2), (3, 1)])
def test_logits_and_gradients(n_encoder_layers: int, n_decoder_layers: int) -> None:
    ours = small_model(1, attention_bias=True, n_encoder_layers=n_encoder_layers, n_decoder_layers=n_decoder_layers)
    marian = make_marian(n_encoder_layers, n_decoder_layers)
    pairs = list(twins(ours, marian))
    assert {id(one) for one, _, _ in pairs} == {id(p) for p in ours.parameters()}
    assert {id(two) for _, two, _ in pairs} == {id(p) for p in marian.parameters() if p.requires_grad}
    with torch.no_grad():
        for one, two, axis in pairs:
            two.copy_(permuted(one, axis))
    table = permuted(ours.src_positions.table_TD, 1)
    assert torch.equal(table, marian.model.encoder.embed_positions.weight)  # to the last bit
    assert torch.equal(table, marian.model.decoder.embed_positions.weight)

    src = sentences(4, 7, seed=2)
    src[1, 5:], src[2, 1:] = PAD, PAD
    tgt = sentences(4, 6, seed=3)
    tgt[:, 0] = BOS
    logits = ours(src, tgt)
    expected = marian(input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt, use_cache=False).logits
    torch.testing.assert_close(logits, expected, **TOLERANCE)

    tgt_out = sentences(4, 6, seed=4)
    for scores in (logits, expected):
        nn.functional.cross_entropy(scores.flatten(0, 1), tgt_out.flatten()).backward()
    for one, two, axis in pairs:
        torch.testing.assert_close(permuted(one.grad, axis), two.grad, **TOLERANCE)
    assert all(one.grad.any() for one, _, _ in pairs)
