"""Our weights under the names that fairseq gave to those of a Transformer, and that Hugging Face took over.

Both add rows of a table to the embeddings, so our positions go there, whatever they are; nothing needs to be permuted.
"""

# Letters: T length, D d_model.

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from benchmarks.translate_speed.workers.protocol import PAD_ID, RefusedError

_PARTS = {
    "self_attn_layer_norm": "self_norm.norm",
    "encoder_attn_layer_norm": "cross_norm.norm",
    "final_layer_norm": "feed_forward_norm.norm",
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
}


def refuse_others(model: Mapping[str, Any]) -> None:
    """RefusedError if a model with these settings is none that they have."""
    width = model["d_model"] // model["n_heads"]
    if model["activation"] == "swiglu" or not model["tie_embeddings"] or not model["attention_scale"]:
        raise RefusedError("has neither SwiGLU nor untied embeddings nor unscaled attention")
    if {model["d_k"] or width, model["d_v"] or width} != {width}:
        raise RefusedError("has no heads of other widths than d_model / n_heads")


def weight_of(name: str, value: Tensor, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    """What goes into the weight of this name, which holds `value` now."""
    side, *rest = name.split(".")
    if rest == ["embed_tokens", "weight"]:
        return weights["embedding.weight"]
    if rest == ["embed_positions", "weight"]:
        return _positions(side, model, weights)
    if rest[:1] == ["layer_norm"]:
        return weights[f"{side}_norm.{rest[1]}"]
    if rest[:1] == ["layers"]:
        ours = ".".join([side, rest[1], *(_PARTS.get(part, part) for part in rest[2:])])
        if ours in weights:
            return weights[ours]
        if name.endswith("bias") and not model["attention_bias"]:
            return torch.zeros_like(value)
    raise KeyError(name)


def fairseq_weight(name: str, value: Tensor, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    """The same for what fairseq alone has."""
    if name == "decoder.output_projection.weight":
        return weights["embedding.weight"]
    if name.endswith(("version", "_weight", "_bias")):
        return value  # its number of a format, and copies of other weights, which it makes when it loads them
    found = weight_of(name, value, model, weights)
    if name.endswith("embed_positions.weight"):  # rows up to the id of padding are for padding
        return torch.cat([torch.zeros(PAD_ID + 1, found.shape[1]), found])
    return found


def _positions(side: str, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    """Position by position (T, D)."""
    n_positions, d_model = model["max_len_tokens"], model["d_model"]
    if model["positions"] == "learned":
        return weights[f"{'src' if side == 'encoder' else 'tgt'}_positions.learned.weight"]
    if model["positions"] == "none":
        return torch.zeros(n_positions, d_model)
    rate = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000) / d_model))
    angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model].float()
