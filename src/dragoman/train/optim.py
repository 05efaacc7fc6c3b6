"""The optimizers, and their state as plain tensors: Adam with the paper's constants (section 5.3), or Muon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from dragoman.train.config import TrainConfig

_ADAM: dict[str, Any] = {"lr": 0.0, "betas": (0.9, 0.98), "eps": 1e-9, "fused": True}
_ADAM_STATE = ("exp_avg", "exp_avg_sq")
_MUON_STATE = ("momentum",)

_MOMENTUM = 0.95
_TYPICAL_CHANGE = 0.15  # root mean square of what an update adds to a matrix, in units of the rate
_ROUNDS = 4
_QUINTIC = (3.4445, -4.7750, 2.0315)  # drives singular values towards 1 fastest, and leaves them between 0.7 and 1.2


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimizer that the settings name, for all of the model's weights. The rate is set before each update.

    Weights decay apart from the gradient (Loshchilov and Hutter, 2019), and only the layers' matrices do.
    """
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in embeddings]
    others = [p for p in model.parameters() if p.ndim != 2 or id(p) in embeddings]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if config.optimizer == "adam":
        return torch.optim.AdamW(groups, **_ADAM)
    return Muon(groups, torch.bfloat16 if config.precision == "bfloat16" else matrices[0].dtype)


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for the matrices of the layers, Adam for everything else.

    The running mean of a matrix's gradients is turned into the nearest orthogonal matrix before it is added: every
    direction then moves by the same amount, the rare ones too. Embeddings, whose rows are learned apart, norms and
    biases are Adam's. Matrices of one shape are worked on together, in products of `dtype`.
    """

    def __init__(self, groups: list[dict[str, Any]], dtype: torch.dtype) -> None:
        """The first of the two groups holds the matrices."""
        self._dtype = dtype
        super().__init__(groups, {"lr": 0.0})
        self._adam = torch.optim.Adam(self.param_groups[1]["params"], **_ADAM)
        self._adam.state = self.state
        by_shape: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in self.param_groups[0]["params"]:
            by_shape.setdefault(tuple(sorted(parameter.shape)), []).append(parameter)
        self._alike = list(by_shape.values())

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Makes an update from the gradients."""
        self._adam.param_groups[0]["lr"] = self.param_groups[1]["lr"]
        self._adam.step()
        matrices = self.param_groups[0]
        torch._foreach_mul_(matrices["params"], 1 - matrices["lr"] * matrices["weight_decay"])
        for parameters in self._alike:
            self._update(parameters, matrices["lr"])

    def _update(self, parameters: list[nn.Parameter], rate: float) -> None:
        for parameter in parameters:
            if parameter not in self.state:
                self.state[parameter] = {"momentum": torch.zeros_like(parameter)}
        momenta = [self.state[parameter]["momentum"] for parameter in parameters]
        gradients = [cast("Tensor", parameter.grad) for parameter in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)
        ahead = torch._foreach_lerp(gradients, momenta, _MOMENTUM)  # Nesterov's look one update ahead
        wide = torch.stack([matrix if len(matrix) <= matrix.shape[1] else matrix.T for matrix in ahead])
        changes = orthogonal(wide, self._dtype).to(wide.dtype)
        size = rate * _TYPICAL_CHANGE * math.sqrt(max(parameters[0].shape))
        for parameter, change in zip(parameters, changes, strict=True):
            parameter.add_(change if len(parameter) <= parameter.shape[1] else change.T, alpha=-size)


def orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Each of the (wide) matrices with its singular values brought near 1, by Newton and Schulz's iteration."""
    a, b, c = _QUINTIC
    x = (matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-30)).to(dtype)
    for number in range(_ROUNDS):
        gram = x @ x.mT
        if number == 0:  # of the norms that bound the singular values a tighter one, which saves a round
            bound = gram.norm(dim=(1, 2), keepdim=True) + 1e-30
            x, gram = x / bound.sqrt(), gram / bound
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers of every weight, named after it."""
    return {
        f"{kind}.{name}": optimizer.state[parameter][kind]
        for name, parameter in model.named_parameters()
        for kind in _remembered(optimizer, parameter)
        if parameter in optimizer.state
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], step: int
) -> None:
    """Puts back what was remembered after update `step`; before the first there is nothing."""
    if step == 0:
        return
    for name, parameter in model.named_parameters():
        kinds = _remembered(optimizer, parameter)
        state = {kind: tensors[f"{kind}.{name}"].to(parameter, copy=True) for kind in kinds}
        optimizer.state[parameter] = {"step": torch.tensor(float(step), device=parameter.device), **state}


def _remembered(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> tuple[str, ...]:
    is_muon = isinstance(optimizer, Muon) and any(parameter is one for one in optimizer.param_groups[0]["params"])
    return _MUON_STATE if is_muon else _ADAM_STATE
