"""Dropout on a sub-layer's output and on embedding sums: paper section 5.4."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_N_LEVELS = 256  # of a random byte, which decides about each value


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

    def forward(self, y: Tensor) -> Tensor:
        """y, with some of its values dropped."""
        return self.add(None, y)

    def add(self, x: Tensor | None, y: Tensor) -> Tensor:
        """x + y, with some of the values of y dropped; in one pass over them."""
        if self.training and self.p > 0 and not y.is_cuda:
            words = torch.empty(-(-y.numel() // 8), dtype=torch.int64).random_(-(2**63), None, generator=self.generator)
            levels = words.view(torch.uint8)[: y.numel()].view(y.shape)
            level = min(max(1, round(self.p * _N_LEVELS)), _N_LEVELS - 1)
            return cast("Tensor", _Dropped.apply(x, y, levels, level))  # type: ignore[no-untyped-call]
        y = F.dropout(y, self.p, self.training)
        return y if x is None else x + y


class _Dropped(torch.autograd.Function):
    """y, with the values dropped whose byte is below `level`; added to x, if there is one. Remembers but the bytes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor | None, y: Tensor, levels: Tensor, level: int) -> Tensor:
        ctx.save_for_backward(levels)
        ctx.level, ctx.dtype = level, y.dtype
        factor = _factor(levels, level, y.dtype if x is None else x.dtype)
        return y * factor if x is None else torch.addcmul(x, y.to(x.dtype), factor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        factor = _factor(ctx.saved_tensors[0], ctx.level, gradient.dtype)
        return gradient if ctx.needs_input_grad[0] else None, factor.mul_(gradient).to(ctx.dtype), None, None


def _factor(levels: Tensor, level: int, dtype: torch.dtype) -> Tensor:
    """0 where a value is dropped, and elsewhere what keeps the mean."""
    kept = torch.ge(levels, level, out=torch.empty(levels.shape, dtype=dtype))
    return kept.mul_(_N_LEVELS / (_N_LEVELS - level))


def seed_dropout(model: nn.Module, seed: int) -> None:
    """Makes what the model drops from now on depend on this seed alone."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.generator = generator
    if any(parameter.is_cuda for parameter in model.parameters()):
        torch.cuda.manual_seed(seed)
