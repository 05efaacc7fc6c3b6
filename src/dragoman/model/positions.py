"""Where a token stands: paper section 3.5."""

# Letters: T length, D d_model.

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.errors import DataError
from dragoman.model.config import ModelConfig


def sinusoids(n_positions: int, d_model: int) -> Tensor:
    """The paper's table PE as (T, D): sine on even, cosine on odd dimensions (section 3.5).

    Computed in float64. Three formulas are in use elsewhere: this interleaved one, sines in the first half and
    cosines in the second (Marian, Hugging Face), and another frequency denominator (tensor2tensor, fairseq).
    """
    position_T1 = torch.arange(n_positions, dtype=torch.float64)[:, None]
    dimension_D = torch.arange(d_model)
    rate_D = 10_000.0 ** (-(dimension_D - dimension_D % 2).double() / d_model)
    angle_TD = position_T1 * rate_D
    return torch.where(dimension_D % 2 == 0, angle_TD.sin(), angle_TD.cos())


class Positions(nn.Module):
    """Adds to each embedding what its position calls for: sinusoids, a learned row, or nothing."""

    table_TD: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.positions
        if self.kind == "learned":
            self.learned = nn.Embedding(config.max_len_tokens, config.d_model)
        elif self.kind == "sinusoidal":
            self.register_buffer("table_TD", sinusoids(config.max_len_tokens, config.d_model).float(), persistent=False)

    def forward(self, x_BTD: Tensor, start: int | Tensor = 0) -> Tensor:
        """x plus the positions from `start` on, or from that of each row, a tensor of (B, 1)."""
        end = (start if isinstance(start, int) else int(start.amax())) + x_BTD.shape[1]
        places: slice | Tensor = slice(start, end) if isinstance(start, int) else start + torch.arange(x_BTD.shape[1])
        if self.kind == "sinusoidal":
            if end > len(self.table_TD):
                self.table_TD = sinusoids(2 * end, x_BTD.shape[2]).float().to(self.table_TD)
            return x_BTD + self.table_TD[places]
        if self.kind == "learned":
            if end > self.learned.num_embeddings:
                raise DataError(
                    f"a sentence of {end} tokens is longer than the {self.learned.num_embeddings} positions learned",
                    hint="split it, or train with a larger model.max_len_tokens or with sinusoidal positions",
                )
            return x_BTD + self.learned.weight[places]
        return x_BTD
