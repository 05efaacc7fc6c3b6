"""Which weights a model has, by its settings alone, so that files can be checked without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig

Shapes = Mapping[str, Sequence[int]]


def check_shapes(path: Path, found: Shapes, expected: Shapes) -> None:
    """Raises unless the weights in a file are exactly those expected."""
    hint = "the config.toml beside it describes another model"
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise ModelError(f"{path} lacks the weight {name}", hint=hint)
        if name not in expected:
            raise ModelError(f"{path} has the weight {name}, which the model has not", hint=hint)
        shape, wanted = list(found[name]), list(expected[name])
        if shape != wanted:
            raise ModelError(f"{path} has {name} of shape {shape}, not {wanted}", hint=hint)


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The names and shapes of a model's weights, as its `state_dict` has them."""
    return dict(_weight_shapes(config))


def _weight_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    d_model, table = config.d_model, (config.vocab_size, config.d_model)
    yield "embedding.weight", table
    if not config.tie_embeddings:
        yield "tgt_embedding.weight", table
        yield "projection.weight", table
    if config.positions == "learned":
        for side in ("src", "tgt"):
            yield f"{side}_positions.learned.weight", (config.max_len_tokens, d_model)
    for stack, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        kinds = ("self", "cross") if stack == "decoder" else ("self",)
        for layer in range(n_layers):
            for kind in kinds:
                yield from _attention(f"{stack}.{layer}.{kind}_attention", config)
            for kind in (*kinds, "feed_forward"):
                yield from _norm(f"{stack}.{layer}.{kind}_norm.norm", d_model)
            inner = ("inner", "gate") if config.activation == "swiglu" else ("inner",)
            for name in inner:
                yield from _linear(f"{stack}.{layer}.feed_forward.{name}", config.d_ff, d_model)
            yield from _linear(f"{stack}.{layer}.feed_forward.outer", d_model, config.d_ff)
        if config.norm == "pre":
            yield from _norm(f"{stack}_norm", d_model)


def _attention(name: str, config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    keys, values = config.n_heads * config.key_width, config.n_heads * config.value_width
    for part, width in (("query", keys), ("key", keys), ("value", values)):
        yield from _linear(f"{name}.{part}", width, config.d_model, has_bias=config.attention_bias)
    yield from _linear(f"{name}.output", config.d_model, values, has_bias=config.attention_bias)


def _linear(name: str, n_out: int, n_in: int, has_bias: bool = True) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (n_out, n_in)
    if has_bias:
        yield f"{name}.bias", (n_out,)


def _norm(name: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)
