"""The Transformer: paper section 3 and figure 1."""

# Letters: B batch, S source length, T target length, D d_model, H heads, V vocabulary.

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.attention import Engine
from dragoman.model.cache import Cache
from dragoman.model.config import ModelConfig
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import causal_mask, padding_mask
from dragoman.model.positions import Positions


class AttentionWeights(NamedTuple):
    """Per layer, the weights of every head as (B, H, queries, keys)."""

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


class Transformer(nn.Module):
    """An encoder and a decoder stack over shared embeddings: `logits = model(src, tgt)`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.src_positions = Positions(config)
        self.tgt_positions = Positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        # Pre-norm layers hand on a bare sum, so each stack ends with a norm of its own.
        self.encoder_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        if not config.tie_embeddings:
            self.tgt_embedding = nn.Embedding(config.vocab_size, config.d_model)
            self.projection = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self)

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Logits (B, T, V) of the token after each prefix of `tgt_BT`, which starts with bos."""
        return self._project(self.hidden(src_BS, tgt_BT))

    def hidden(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """What the logits of `forward` are projected from, (B, T, D)."""
        return self._decode(tgt_BT, self.start(src_BS), "fused")[0]

    @property
    def output_weight_VD(self) -> Tensor:  # noqa: N802 (shapes are part of our names)
        """The projection to logits: with tied embeddings the embedding matrix itself (section 3.4)."""
        return self.embedding.weight if self.config.tie_embeddings else self.projection.weight

    def explain(self, src_BS: Tensor, tgt_BT: Tensor) -> tuple[Tensor, AttentionWeights]:
        """The logits of `forward` by the readable attention, with the weights of every layer and head."""
        memory_BSD, encoder_weights = self._encode(src_BS, "readable")
        cache = self._cache(src_BS, memory_BSD)
        hidden_BTD, _, (self_weights, cross_weights) = self._decode(tgt_BT, cache, "readable")
        return self._project(hidden_BTD), AttentionWeights(encoder_weights, self_weights, cross_weights)

    def start(self, src_BS: Tensor) -> Cache:
        """The cache from which `step` decodes: the encoded source and no target token yet."""
        memory_BSD, _ = self._encode(src_BS, "fused")
        return self._cache(src_BS, memory_BSD)

    def step(self, last_ids_B: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities (B, V) of the next token of each row, and the cache that includes `last_ids_B`."""
        last_ids_B1 = last_ids_B[:, None].to(self.embedding.weight.device)
        hidden_BTD, cache, _ = self._decode(last_ids_B1, cache, "fused")
        return F.log_softmax(self._project(hidden_BTD[:, 0]), dim=-1), cache

    def _encode(self, src_BS: Tensor, engine: Engine) -> tuple[Tensor, list[Tensor]]:
        x_BSD = self.embed(src_BS, self.embedding, self.src_positions, 0)
        may_see = padding_mask(src_BS, self.config.pad_id)
        layer_weights = []
        for layer in self.encoder:
            x_BSD, weights = layer(x_BSD, may_see, engine)
            layer_weights.append(weights)
        return self.encoder_norm(x_BSD), layer_weights

    def _cache(self, src_BS: Tensor, memory_BSD: Tensor) -> Cache:
        layers = cast("list[DecoderLayer]", list(self.decoder))
        return Cache(
            memory=tuple(layer.cross_attention.keys_values(memory_BSD) for layer in layers),
            past=(None,) * len(self.decoder),
            src_may_see=padding_mask(src_BS, self.config.pad_id),
        )

    def _decode(
        self, tgt_BT: Tensor, cache: Cache, engine: Engine
    ) -> tuple[Tensor, Cache, tuple[list[Tensor], list[Tensor]]]:
        n_tokens = cache.n_tokens + tgt_BT.shape[1]
        embedding = self.embedding if self.config.tie_embeddings else self.tgt_embedding
        x_BTD = self.embed(tgt_BT, embedding, self.tgt_positions, cache.n_tokens)
        # Padding stands after the words, so the causal mask hides it from them; one query alone sees all there is.
        may_see = None if tgt_BT.shape[1] == 1 else causal_mask(tgt_BT.shape[1], n_tokens, tgt_BT.device)
        present, self_weights, cross_weights = [], [], []
        for layer, past, memory in zip(self.decoder, cache.past, cache.memory, strict=True):
            x_BTD, kv, weights = layer(x_BTD, past, memory, may_see, cache.src_may_see, engine)
            present.append(kv)
            self_weights.append(weights[0])
            cross_weights.append(weights[1])
        cache = Cache(memory=cache.memory, past=tuple(present), src_may_see=cache.src_may_see, n_tokens=n_tokens)
        return self.decoder_norm(x_BTD), cache, (self_weights, cross_weights)

    def embed(self, ids_BT: Tensor, embedding: nn.Embedding, positions: Positions, start: int | Tensor) -> Tensor:
        """Embeddings times sqrt(d_model), plus positions, dropped out: sections 3.4, 3.5 and 5.4."""
        return self.dropout(positions(embedding(ids_BT) * math.sqrt(self.config.d_model), start))

    def _project(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.output_weight_VD)


def initialize(model: Transformer) -> None:
    """Draws all weights anew. The paper does not say how; this is why ours is so.

    Xavier keeps the variance of a signal through each projection. Embeddings of deviation d_model^-0.5 come out of
    the √d_model scaling with deviation 1, on the scale of the sinusoids, and give logits of deviation about 1 from
    the same tied matrix. Norms start as the identity, biases at zero (PyTorch and we agree there).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=model.config.d_model**-0.5)
