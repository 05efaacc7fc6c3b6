"""Adam with the paper's constants (section 5.3), and its state as plain tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_MOMENTS = ("exp_avg", "exp_avg_sq")


def make_optimizer(model: nn.Module) -> torch.optim.Adam:
    """Adam with β1 = 0.9, β2 = 0.98 and ε = 1e-9. The rate is set before each update."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments of every weight, named after it."""
    return {
        f"{moment}.{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        for moment in _MOMENTS
        if parameter in optimizer.state
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], step: int
) -> None:
    """Puts the moments back, as they were after update `step`; before the first there are none."""
    if step == 0:
        return
    for name, parameter in model.named_parameters():
        moments = {moment: tensors[f"{moment}.{name}"].to(parameter, copy=True) for moment in _MOMENTS}
        optimizer.state[parameter] = {"step": torch.tensor(float(step), device=parameter.device), **moments}
