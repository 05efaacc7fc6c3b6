"""A model of ours as one of Hugging Face's, weight for weight.

Post-norm is Marian. Pre-norm is Pegasus: pre-norm, a norm after each stack, a table of positions, and the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch import Tensor

from benchmarks.translate_speed.workers.fairseq_names import refuse_others, weight_of
from benchmarks.translate_speed.workers.protocol import BOS_ID, EOS_ID, PAD_ID


def to_huggingface(model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> transformers.PreTrainedModel:
    """The model with these settings and weights, in float32, ready for `generate`; RefusedError if there is none."""
    refuse_others(model)
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


def _weight(name: str, value: Tensor, model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    if name in ("model.shared.weight", "lm_head.weight"):
        return weights["embedding.weight"]
    if name == "final_logits_bias":
        return torch.zeros_like(value)
    return weight_of(name.removeprefix("model."), value, model, weights)
