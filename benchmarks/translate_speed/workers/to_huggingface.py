"""A model of ours as one of Hugging Face's, weight for weight.

Post-norm is Marian. Pre-norm is Pegasus: pre-norm, a norm after each stack, a table of positions, and the same names.
Both add rows of a table to the embeddings, so ours goes there, and nothing needs to be permuted.
"""

# Letters: T length, D d_model.

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch import Tensor

from benchmarks.translate_speed.workers.protocol import BOS_ID, EOS_ID, PAD_ID, RefusedError

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


def to_huggingface(model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> transformers.PreTrainedModel:
    """The model with these settings and weights, in float32, ready for `generate`; RefusedError if there is none."""
    _check(model)
    is_pre = model["norm"] == "pre"
    config = (transformers.PegasusConfig if is_pre else transformers.MarianConfig)(
        vocab_size=model["vocab_size"],
        d_model=model["d_model"],
        encoder_layers=model["n_encoder_layers"],
        decoder_layers=model["n_decoder_layers"],
        encoder_attention_heads=model["n_heads"],
        decoder_attention_heads=model["n_heads"],
        encoder_ffn_dim=model["d_ff"],
        decoder_ffn_dim=model["d_ff"],
        activation_function=model["activation"],
        scale_embedding=True,
        tie_word_embeddings=True,
        max_position_embeddings=model["max_len_tokens"],
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        forced_eos_token_id=None,
        attn_implementation="sdpa",
    )
    made = (transformers.PegasusForConditionalGeneration if is_pre else transformers.MarianMTModel)(config)
    state = {name: _weight(name, value, model, weights) for name, value in made.state_dict().items()}
    made.load_state_dict(state)
    return made.eval()


def _check(model: Mapping[str, Any]) -> None:
    width = model["d_model"] // model["n_heads"]
    if model["activation"] == "swiglu" or not model["tie_embeddings"] or not model["attention_scale"]:
        raise RefusedError("has neither SwiGLU nor untied embeddings nor unscaled attention")
    if {model["d_k"] or width, model["d_v"] or width} != {width}:
        raise RefusedError("has no heads of other widths than d_model / n_heads")


def _weight(name: str, value: Tensor, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    """What goes into Hugging Face's weight of this name, which holds `value` now."""
    if name.endswith(("shared.weight", "embed_tokens.weight", "lm_head.weight")):
        return weights["embedding.weight"]
    parts = name.removeprefix("model.").split(".")
    side, *rest = parts
    if rest == ["embed_positions", "weight"]:
        return _positions(side, model, weights)
    if rest[:1] == ["layer_norm"]:
        return weights[f"{side}_norm.{rest[1]}"]
    if rest[:1] == ["layers"]:
        ours = ".".join([side, rest[1], *(_PARTS.get(part, part) for part in rest[2:])])
        if ours in weights:
            return weights[ours]
    if name == "final_logits_bias" or (name.endswith("bias") and not model["attention_bias"]):
        return torch.zeros_like(value)
    raise KeyError(name)


def _positions(side: str, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    n_positions, d_model = model["max_len_tokens"], model["d_model"]
    if model["positions"] == "learned":
        return weights[f"{'src' if side == 'encoder' else 'tgt'}_positions.learned.weight"]
    if model["positions"] == "none":
        return torch.zeros(n_positions, d_model)
    rate = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000) / d_model))
    angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model].float()
