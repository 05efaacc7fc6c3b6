"""A model as CTranslate2 reads it, made from our weights directly; needs numpy, not torch.

Our order of the sinusoids is another than CTranslate2's own, so that the table of positions goes into the file.
"""

# Letters: T length, D d_model, O outputs, I inputs.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.checkpoint.int8 import SumBits, to_bytes
from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig

Weights = Mapping[str, np.ndarray]

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swiglu": "SWISH"}
_MOST_POSITIONS = 2048  # longer sentences are beyond this engine, unless learned positions end earlier


def write_ct2(
    folder: Path, config: ModelConfig, weights: Weights, pieces: Sequence[str], sum_bits: SumBits | None,
    tgt_ids: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Fills the folder with the files of a CTranslate2 model that gives the same answers as ours.

    `pieces` are the subwords by id. With `sum_bits`, matrices are in int8, for a processor that adds up products of
    bytes in so many. Without, everything is float32. With `tgt_ids` it writes no other subwords.
    """
    from ctranslate2 import specs

    _check(config)
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.n_encoder_layers, **_shape(config, specs)),
        specs.TransformerDecoderSpec(config.n_decoder_layers, **_shape(config, specs)),
    )
    _fill_stack(spec.encoder, "encoder", config, weights, sum_bits)
    _fill_stack(spec.decoder, "decoder", config, weights, sum_bits)
    tied = config.tie_embeddings
    looked_up: SumBits | None = None if sum_bits is None else 32  # embeddings are not added up
    _fill_matrix(spec.encoder.embeddings[0], weights["embedding.weight"], looked_up)
    rows = list(range(len(pieces)) if tgt_ids is None else tgt_ids)
    _fill_matrix(
        spec.decoder.embeddings, weights["embedding.weight" if tied else "tgt_embedding.weight"][rows], looked_up
    )
    _fill_matrix(spec.decoder.projection, weights["embedding.weight" if tied else "projection.weight"][rows], sum_bits)
    spec.encoder.position_encodings.encodings = _positions(config, weights, "src_positions")
    spec.decoder.position_encodings.encodings = _positions(config, weights, "tgt_positions")
    spec.config.add_source_eos = True
    spec.register_source_vocabulary(list(pieces))
    spec.register_target_vocabulary([pieces[i] for i in rows])
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def suits_ct2(config: ModelConfig) -> bool:
    """Whether CTranslate2 can compute this model."""
    return config.key_width == config.value_width


def _check(config: ModelConfig) -> None:
    if not suits_ct2(config):
        raise ModelError(
            f"CTranslate2 has no heads with keys of width {config.key_width} and values of width {config.value_width}",
            hint="use --engine torch",
        )


def _shape(config: ModelConfig, specs: Any) -> dict[str, Any]:
    is_default = config.key_width * config.n_heads == config.d_model
    return {
        "num_heads": config.n_heads,
        "pre_norm": config.norm == "pre",
        "activation": getattr(specs.Activation, _ACTIVATIONS[config.activation]),
        "ffn_glu": config.activation == "swiglu",
        "head_dim": None if is_default else config.key_width,
    }


def _positions(config: ModelConfig, weights: Weights, name: str) -> np.ndarray:
    """The table that is added to the embeddings (T, D)."""
    if config.positions == "learned":
        return weights[f"{name}.learned.weight"]
    table_TD = np.zeros((_MOST_POSITIONS, config.d_model))
    if config.positions == "sinusoidal":  # model/positions.py has the same with torch
        dimension_D = np.arange(config.d_model)
        angle_TD = np.arange(_MOST_POSITIONS)[:, None] * 10_000.0 ** (-(dimension_D - dimension_D % 2) / config.d_model)
        table_TD = np.where(dimension_D % 2 == 0, np.sin(angle_TD), np.cos(angle_TD))
    return table_TD.astype(np.float32)


def _fill_stack(spec: Any, side: str, config: ModelConfig, weights: Weights, sum_bits: SumBits | None) -> None:
    if config.norm == "pre":
        _fill_norm(spec.layer_norm, f"{side}_norm", weights)
    for number, layer in enumerate(spec.layer):
        name = f"{side}.{number}"
        _fill_attention(layer.self_attention, f"{name}.self", ["query", "key", "value"], [], config, weights, sum_bits)
        if side == "decoder":
            _fill_attention(layer.attention, f"{name}.cross", ["query"], ["key", "value"], config, weights, sum_bits)
        _fill_norm(layer.ffn.layer_norm, f"{name}.feed_forward_norm.norm", weights)
        first = "gate" if config.activation == "swiglu" else "inner"
        _fill_linear(layer.ffn.linear_0, [f"{name}.feed_forward.{first}"], weights, sum_bits)
        if config.activation == "swiglu":
            _fill_linear(layer.ffn.linear_0_noact, [f"{name}.feed_forward.inner"], weights, sum_bits)
        _fill_linear(layer.ffn.linear_1, [f"{name}.feed_forward.outer"], weights, sum_bits)


def _fill_attention(
    spec: Any,
    name: str,
    first: list[str],
    second: list[str],
    config: ModelConfig,
    weights: Weights,
    sum_bits: SumBits | None,
) -> None:
    """The projections of an attention; those of one list are one matrix in CTranslate2."""
    parts = [part for part in (first, second, ["output"]) if part]
    for linear, part in zip(spec.linear, parts, strict=True):
        _fill_linear(linear, [f"{name}_attention.{one}" for one in part], weights, sum_bits)
    _fill_norm(spec.layer_norm, f"{name}_norm.norm", weights)
    if not config.attention_scale:
        spec.queries_scale = np.float32(1)


def _fill_linear(spec: Any, names: list[str], weights: Weights, sum_bits: SumBits | None) -> None:
    _fill_matrix(spec, np.concatenate([weights[f"{name}.weight"] for name in names]), sum_bits)
    if f"{names[0]}.bias" in weights:
        spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _fill_matrix(spec: Any, weight_OI: np.ndarray, sum_bits: SumBits | None) -> None:
    """A matrix as it is, or its rows in bytes."""
    if sum_bits is None:
        spec.weight = weight_OI
    else:
        spec.weight, spec.weight_scale = to_bytes(weight_OI, sum_bits)


def _fill_norm(spec: Any, name: str, weights: Weights) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
