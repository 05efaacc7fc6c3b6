"""Dropout on a sub-layer's output and on embedding sums: paper section 5.4."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_N_LEVELS = 256  # a random byte decides about each value


class Dropout(nn.Module):
    """Zeroes values with probability `p` while training, and scales the rest so that the mean stays.

    On the processor, drawing random numbers one by one costs more than some matrix products of a small model, so a
    random byte decides about each value: `p` is rounded to a multiple of 1/256 (0.1 becomes 0.1016), and the scale is
    that of the rounded value. `generator` is where the bytes come from; PyTorch's own if there is none.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """x, with some of its values dropped."""
        if not self.training or self.p == 0:
            return x
        if x.is_cuda:
            return F.dropout(x, self.p)
        keep, scale = self._keep(x)
        return x * keep.mul_(scale)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y, with some of the values of y dropped; in one pass over them."""
        if not self.training or self.p == 0:
            return x + y
        if x.is_cuda:
            return x + F.dropout(y, self.p)
        keep, scale = self._keep(y)
        return torch.addcmul(x, y, keep, value=scale)

    def _keep(self, x: Tensor) -> tuple[Tensor, float]:
        """1 where a value stays and 0 elsewhere, in the shape and type of x, and what to multiply it by."""
        n_dropped = min(max(1, round(self.p * _N_LEVELS)), _N_LEVELS - 1)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        levels = words.view(torch.uint8)[: x.numel()].view(x.shape)
        return torch.ge(levels, n_dropped, out=torch.empty_like(x)), _N_LEVELS / (_N_LEVELS - n_dropped)


def seed_dropout(model: nn.Module, seed: int) -> None:
    """Makes what the model drops from now on depend on this seed alone."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.generator = generator
    if any(parameter.is_cuda for parameter in model.parameters()):
        torch.cuda.manual_seed(seed)
