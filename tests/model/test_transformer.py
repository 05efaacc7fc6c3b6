"""The model as a whole: every option turned on, shapes, the edges, and where the dropout is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small_models import BOS, PAD, sentences, small_config, small_model
from torch import nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.config import ModelConfig
from dragoman.model.layers import AddAndNorm, FeedForward
from dragoman.model.parameters import parameters_by_part
from dragoman.model.transformer import Transformer, initialize

OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"positions": "none"},
    {"activation": "gelu"},
    {"activation": "swiglu"},
    {"tie_embeddings": False},
    {"attention_bias": True},
    {"attention_scale": False},
    {"n_encoder_layers": 3, "n_decoder_layers": 1},
    {"d_k": 3, "d_v": 5},
    {"n_heads": 3, "d_k": 2, "d_v": 2},
    {"pad_id": 16},
    {
        "norm": "pre", "positions": "learned", "activation": "swiglu", "tie_embeddings": False, "attention_bias": True,
        "d_k": 3,
    },
]  # fmt: skip
options = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: "-".join(map(str, option.values())) or "paper")


def a_batch(pad_id: int = PAD) -> tuple[torch.Tensor, torch.Tensor]:
    src, tgt = sentences(3, 6, vocab_size=16), sentences(3, 5, seed=1, vocab_size=16)
    src[1, 4:], src[2, 1:] = pad_id, pad_id
    tgt[:, 0] = BOS
    return src, tgt


@options
def test_every_option_trains(option: dict[str, Any]) -> None:
    """One step down the gradient lowers the loss, and every weight takes part."""
    model = small_model(**option)
    src, tgt = a_batch(model.config.pad_id)

    def loss() -> torch.Tensor:
        logits = model(src, tgt)
        assert logits.shape == (3, 5, 17)
        return F.cross_entropy(logits.flatten(0, 1), tgt.roll(-1, 1).flatten())

    before = loss()
    before.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    assert loss() < before


@options
def test_explain_is_forward_with_the_weights(option: dict[str, Any]) -> None:
    model = small_model(**option)
    config = model.config
    src, tgt = a_batch(config.pad_id)
    logits, weights = model.explain(src, tgt)
    torch.testing.assert_close(logits, model(src, tgt), rtol=0, atol=1e-10)
    for layers, n_layers, n_queries, n_keys in (
        (weights.encoder, config.n_encoder_layers, 6, 6),
        (weights.decoder, config.n_decoder_layers, 5, 5),
        (weights.cross, config.n_decoder_layers, 5, 6),
    ):
        assert len(layers) == n_layers
        for layer in layers:
            assert layer.shape == (3, config.n_heads, n_queries, n_keys)
            torch.testing.assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]), rtol=0, atol=1e-12)
    for layer in (*weights.encoder, *weights.cross):
        assert not layer[src.eq(config.pad_id)[:, None, None, :].expand_as(layer)].any()  # none looks at padding
    for layer in weights.decoder:
        assert not layer.triu(1).any()  # nor into the future


def test_swiglu_by_hand() -> None:
    feed_forward = FeedForward(small_config(activation="swiglu")).double()
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    inner = x @ feed_forward.inner.weight.T + feed_forward.inner.bias
    gate = x @ feed_forward.gate.weight.T + feed_forward.gate.bias
    expected = (gate / (1 + torch.exp(-gate)) * inner) @ feed_forward.outer.weight.T + feed_forward.outer.bias
    torch.testing.assert_close(feed_forward(x), expected, rtol=0, atol=1e-13)


def test_relu_by_hand() -> None:
    feed_forward = FeedForward(small_config()).double()
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    inner = x @ feed_forward.inner.weight.T + feed_forward.inner.bias
    expected = torch.where(inner > 0, inner, 0) @ feed_forward.outer.weight.T + feed_forward.outer.bias
    torch.testing.assert_close(feed_forward(x), expected, rtol=0, atol=1e-13)
    assert not hasattr(feed_forward, "gate")


def test_tied_embeddings_are_one_matrix_and_untied_ones_three() -> None:
    def tables(model: Transformer) -> list[str]:
        return [name for name, parameter in model.named_parameters() if parameter.shape == (17, 8)]

    assert tables(small_model()) == ["embedding.weight"]
    assert tables(small_model(tie_embeddings=False)) == [
        "embedding.weight",
        "tgt_embedding.weight",
        "projection.weight",
    ]


def test_the_output_projection_has_no_bias_and_is_the_embedding() -> None:
    """A token whose embedding is zero has the logit zero everywhere."""
    model = small_model()
    with torch.no_grad():
        model.embedding.weight[11] = 0
    assert not model(*a_batch())[..., 11].any()


@pytest.mark.parametrize(
    ("preset", "shape"),
    [
        ("tiny", (128, 256, 4, 4, 4, 0.1)),
        ("small", (256, 1024, 8, 3, 3, 0.1)),
        ("fast", (256, 1024, 8, 6, 1, 0.1)),
        ("base", (512, 2048, 8, 6, 6, 0.1)),
        ("big", (1024, 4096, 16, 6, 6, 0.3)),
    ],
)
def test_presets(preset: str, shape: tuple[float, ...]) -> None:
    config: ModelConfig = getattr(ModelConfig, preset)(vocab_size=1000)
    found = (
        config.d_model, config.d_ff, config.n_heads, config.n_encoder_layers, config.n_decoder_layers, config.dropout
    )  # fmt: skip
    assert found == shape
    assert (config.norm, config.positions, config.activation, config.tie_embeddings) == (
        "post", "sinusoidal", "relu", True
    )  # fmt: skip
    assert getattr(ModelConfig, preset)(dropout=0.05).dropout == 0.05
    with torch.device("meta"):
        model = Transformer(config)
        logits = model(torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long))
    assert logits.shape == (2, 5, 1000)
    assert len(model.encoder) == config.n_encoder_layers
    assert model.encoder[0].self_attention.query.weight.shape == (config.d_model, config.d_model)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_one_word_and_nothing_at_all(dtype: torch.dtype, norm: str) -> None:
    """A sentence of one token and a row of padding alone: finite forward and backward, by both engines."""
    model = small_model(dtype=dtype, norm=norm)
    src = torch.tensor([[5, PAD, PAD], [PAD, PAD, PAD], [5, 6, 7]])
    tgt = torch.tensor([[BOS, PAD], [BOS, 4], [PAD, PAD]])
    for logits in (model(src, tgt), model.explain(src, tgt)[0]):
        assert logits.isfinite().all()
        model.zero_grad()
        logits.square().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model(src[:1, :1], tgt[:1, :1]).shape == (1, 1, 17)


def test_dropout_is_on_in_training_only() -> None:
    model, batch = small_model(dropout=0.3), a_batch()
    model.train()
    assert not torch.equal(model(*batch), model(*batch))
    model.eval()
    assert torch.equal(model(*batch), model(*batch))
    assert torch.equal(model(*batch), small_model()(*batch))


def test_dropout_is_where_the_paper_puts_it() -> None:
    """Section 5.4: on the output of each sub-layer and on the sums of embeddings and positions, nowhere else."""
    model = small_model(dropout=0.5).train()
    homes = {name for name, module in model.named_modules() if isinstance(module, nn.Dropout)}
    sublayers = [f"encoder.{i}.{norm}" for i in range(2) for norm in ("self_norm", "feed_forward_norm")]
    sublayers += [f"decoder.{i}.{norm}" for i in range(2) for norm in ("self_norm", "cross_norm", "feed_forward_norm")]
    assert homes == {"dropout", *(f"{name}.dropout" for name in sublayers)}
    assert all(module.p == 0.5 for module in model.modules() if isinstance(module, nn.Dropout))


def test_no_dropout_on_attention_weights_or_inside_the_feed_forward() -> None:
    config, x = small_config(dropout=0.5), torch.randn(2, 5, 8)
    attention, feed_forward = MultiHeadAttention(config).train(), FeedForward(config).train()
    qkv = attention.queries_keys_values(x)
    for engine in ("fused", "readable"):
        assert torch.equal(attention(*qkv, None, engine)[0], attention(*qkv, None, engine)[0])
    assert torch.equal(feed_forward(x), feed_forward(x))


def test_dropout_falls_on_the_sublayer_before_the_addition() -> None:
    """With p = 1/2 what remains is doubled; the residual path is never touched."""
    torch.manual_seed(0)
    box = AddAndNorm(small_config(dropout=0.5, norm="pre")).train()
    x = torch.randn(4, 10, 8)
    assert torch.equal(box.after(x, torch.zeros_like(x)), x)
    assert set(box.after(torch.zeros_like(x), torch.ones_like(x)).unique().tolist()) == {0.0, 2.0}
    post = AddAndNorm(small_config(dropout=0.5)).train()
    torch.testing.assert_close(post.after(x, torch.zeros_like(x)), F.layer_norm(x, (8,)))


def test_the_embedding_sum_is_scaled_and_placed_before_its_dropout() -> None:
    model = small_model()
    seen: list[torch.Tensor] = []
    model.dropout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    src, tgt = a_batch()
    model(src, tgt)
    for ids, values in zip((src, tgt), seen, strict=True):
        expected = math.sqrt(8) * model.embedding.weight[ids] + model.src_positions.table_TD[: ids.shape[1]]
        torch.testing.assert_close(values, expected, rtol=0, atol=1e-13)


def test_initial_weights() -> None:
    """Embeddings of deviation d_model^-0.5, Xavier for projections, zero biases, norms the identity."""
    torch.manual_seed(0)
    model = Transformer(small_config(vocab_size=500, d_model=64, d_ff=128, attention_bias=True, norm="pre"))
    assert model.embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / sum(module.weight.shape))
            assert 0.95 * bound < module.weight.abs().max() <= bound, name
            assert not module.bias.any(), name
        elif isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all(), name
            assert not module.bias.any(), name
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    initialize(model)
    assert not torch.equal(before["embedding.weight"], model.embedding.weight)


@options
def test_parameters_by_part_count_every_weight(option: dict[str, Any]) -> None:
    model = small_model(**option)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    counts = parameters_by_part(sizes)
    assert sum(counts.values()) == sum(sizes.values())
    norms = {"encoder norms": 2 * len(model.encoder), "decoder norms": 3 * len(model.decoder)}
    for part, n_norms in norms.items():
        assert counts[part] == 16 * (n_norms + (model.config.norm == "pre"))
    attention = sum(p.numel() for p in model.encoder[0].self_attention.parameters())
    assert counts["encoder attention"] == len(model.encoder) * attention
    assert counts["decoder attention"] == 2 * len(model.decoder) * attention
