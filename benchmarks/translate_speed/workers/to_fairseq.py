"""A model of ours as fairseq's Transformer, weight for weight."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from benchmarks.old_packages import hashable_dataclasses
from benchmarks.translate_speed.workers.fairseq_names import fairseq_weight, refuse_others
from benchmarks.translate_speed.workers.protocol import BOS_ID, EOS_ID, PAD_ID, UNK_ID

with hashable_dataclasses():
    from fairseq.models.transformer import TransformerConfig, TransformerModelBase


class Words:
    """What fairseq asks of a dictionary, with our ids: its own has them in another order."""

    def __init__(self, n_words: int) -> None:
        self._n_words = n_words

    def __len__(self) -> int:
        return self._n_words

    def pad(self) -> int:
        return PAD_ID

    def unk(self) -> int:
        return UNK_ID

    def bos(self) -> int:
        return BOS_ID

    def eos(self) -> int:
        return EOS_ID


def to_fairseq(model: Mapping[str, Any], weights: Mapping[str, Tensor]) -> TransformerModelBase:
    """The model with these settings and weights, in float32, ready for `SequenceGenerator`; else RefusedError."""
    refuse_others(model)
    words = Words(model["vocab_size"])
    config = TransformerConfig(
        activation_fn=model["activation"],
        share_all_embeddings=True,
        max_source_positions=model["max_len_tokens"],
        max_target_positions=model["max_len_tokens"],
    )
    for side, n_layers in ((config.encoder, "n_encoder_layers"), (config.decoder, "n_decoder_layers")):
        side.embed_dim, side.ffn_embed_dim = model["d_model"], model["d_ff"]
        side.layers, side.attention_heads = model[n_layers], model["n_heads"]
        side.normalize_before = model["norm"] == "pre"
        side.learned_pos = True  # a table, in which ours goes: its sinusoids are in another order
    config.decoder.input_dim = config.decoder.output_dim = model["d_model"]
    made = TransformerModelBase.build_model(config, SimpleNamespace(source_dictionary=words, target_dictionary=words))
    made.eval()  # before the weights come: fairseq then fuses the layers of a post-norm encoder
    made.load_state_dict(
        {name: fairseq_weight(name, value, model, weights) for name, value in made.state_dict().items()}
    )
    made.make_generation_fast_()  # as its own programs do: no attention weights but the last layer's
    return made
