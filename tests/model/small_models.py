"""Models small enough to be run many times, in double precision and with no weight left at a special value."""

from __future__ import annotations

from typing import Any

import torch

from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

PAD, BOS, EOS = 0, 2, 3


def small_config(**changes: Any) -> ModelConfig:
    """Two layers of eight dimensions, without dropout."""
    shape: dict[str, Any] = {
        "vocab_size": 17, "d_model": 8, "d_ff": 12, "n_heads": 2, "n_encoder_layers": 2, "n_decoder_layers": 2,
        "dropout": 0.0, "max_len_tokens": 32,
    }  # fmt: skip
    return ModelConfig(**{**shape, **changes})


def small_model(seed: int = 0, dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    """A model whose every weight, biases and norms included, is drawn at random."""
    torch.manual_seed(seed)
    model = Transformer(small_config(**changes)).to(dtype)
    scatter(model)
    return model


@torch.no_grad()
def scatter(module: torch.nn.Module) -> None:
    """Moves each weight at random, so that no bias is zero and no norm the identity."""
    for parameter in module.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))


def sentences(n: int, length: int, seed: int = 0, vocab_size: int = 17) -> torch.Tensor:
    """Random ids without special ones."""
    return torch.randint(EOS + 1, vocab_size, (n, length), generator=torch.Generator().manual_seed(seed))


def pad_to(rows: list[torch.Tensor], length: int) -> torch.Tensor:
    """The rows as one tensor, filled up with padding on the right."""
    return torch.stack([torch.nn.functional.pad(row, (0, length - len(row)), value=PAD) for row in rows])
