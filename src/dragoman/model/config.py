"""The settings of the model, section `[model]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from dragoman.errors import ConfigError

Norm = Literal["post", "pre"]
Positions = Literal["sinusoidal", "learned", "none"]
Activation = Literal["relu", "gelu", "swiglu"]

_CHOICES = {"norm": Norm, "positions": Positions, "activation": Activation}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shape and variant of a Transformer. Defaults are the paper's base model (table 3, first row)."""

    vocab_size: int = 37_000  # set from the subwords that training learns
    d_model: int = 512  # width of embeddings and of everything between sub-layers
    d_ff: int = 2048  # width inside the feed-forward sub-layers
    n_heads: int = 8  # attentions side by side
    d_k: int | None = None  # d_model / n_heads unless said otherwise (table 3, rows B)
    d_v: int | None = None  # likewise
    n_encoder_layers: int = 6  # the paper's N
    n_decoder_layers: int = 6  # the paper's N, free of the encoder's here
    dropout: float = 0.1  # on sub-layer outputs and embedding sums: P_drop
    norm: Norm = "post"  # LayerNorm(x + Sublayer(x)); "pre" is x + Sublayer(LayerNorm(x))
    positions: Positions = "sinusoidal"  # or "learned" (table 3, row E) or "none"
    activation: Activation = "relu"  # or "gelu" or "swiglu"
    tie_embeddings: bool = True  # one matrix for both embeddings and the output projection
    attention_bias: bool = False  # the paper's projections have none; torch.nn's and Marian's do
    attention_scale: bool = True  # False drops the 1/sqrt(d_k): an ablation the paper argues but does not run
    max_len_tokens: int = 1024  # rows of the table of learned positions; the others have no limit
    pad_id: int = 0  # the id that fills up short sentences

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in get_args(choices):
                hint = f"use one of {', '.join(get_args(choices))}"
                raise ConfigError(f'model.{name}="{value}" is not a choice', hint=hint)
        for name in (
            "vocab_size", "d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers", "max_len_tokens"
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name}={getattr(self, name)} is below 1", hint="give a whole number above 0")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout={self.dropout} is not a probability below 1", hint="the paper uses 0.1")
        if not 0 <= self.pad_id < self.vocab_size:
            message = f"model.pad_id={self.pad_id} is outside the vocabulary of {self.vocab_size}"
            raise ConfigError(message, hint="leave it at 0")
        if self.d_model % self.n_heads and (self.d_k is None or self.d_v is None):
            fit = self.n_heads * max(1, self.d_model // self.n_heads)
            raise ConfigError(
                f"model.d_model={self.d_model} does not split over n_heads={self.n_heads}",
                hint=f"use d_model={fit} or d_model={fit + self.n_heads}, or set d_k and d_v",
            )
        for name in ("key_width", "value_width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"the {name} of an attention head is {getattr(self, name)}", hint="raise d_k and d_v")

    @property
    def key_width(self) -> int:
        """d_k, resolved."""
        return self.d_model // self.n_heads if self.d_k is None else self.d_k

    @property
    def value_width(self) -> int:
        """d_v, resolved."""
        return self.d_model // self.n_heads if self.d_v is None else self.d_v

    @classmethod
    def tiny(cls, **changes: Any) -> ModelConfig:
        """A model for small corpora: four thin layers on each side."""
        return _preset(changes, d_model=128, d_ff=256, n_heads=4, n_encoder_layers=4, n_decoder_layers=4)

    @classmethod
    def small(cls, **changes: Any) -> ModelConfig:
        """A model for a laptop: three layers of half the paper's width."""
        return _preset(changes, d_model=256, d_ff=1024, n_heads=8, n_encoder_layers=3, n_decoder_layers=3)

    @classmethod
    def fast(cls, **changes: Any) -> ModelConfig:
        """As wide as `small`, but six layers read and one writes (Kasai et al. 2020, Deep Encoder, Shallow Decoder)."""
        return cls.small(**{"n_encoder_layers": 6, "n_decoder_layers": 1, **changes})

    @classmethod
    def base(cls, **changes: Any) -> ModelConfig:
        """The paper's base model."""
        return _preset(changes)

    @classmethod
    def big(cls, **changes: Any) -> ModelConfig:
        """The paper's big model (table 3, last row; its English-French run used dropout 0.1)."""
        return _preset(changes, d_model=1024, d_ff=4096, n_heads=16, dropout=0.3)


def _preset(changes: dict[str, Any], **settings: Any) -> ModelConfig:
    return ModelConfig(**{**settings, **changes})
