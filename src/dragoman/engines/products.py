"""Linear layers for a processor, in fewer bits than training has: each in place of an `nn.Linear`."""

# Letters: N rows, I inputs, O outputs.

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.checkpoint.int8 import to_bytes
from dragoman.engines.processor import sum_bits

_LEVELS = 127  # of an input in a signed byte, on each side of zero
_ZERO = 128  # where zero stands among unsigned bytes
_LEAST = 1e-10  # in place of a scale of zero


def has_int8() -> bool:
    """Whether torch multiplies bytes on this processor faster than floats."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512") and hasattr(
        torch.ops.onednn, "qlinear_pointwise"
    )


class Int8Linear(nn.Module):
    """x W' + b with bytes: a scale for each output of W, and one for each row of x.

    A row's bytes come from that row alone and their sums are exact integers, so none depends on the company it is in.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        super().__init__()
        q_OI, levels_O = map(torch.from_numpy, to_bytes(weight_OI.numpy(), sum_bits()))
        self._scale_O = levels_O.reciprocal_()
        self._packed = torch.ops.onednn.qlinear_prepack(q_OI, None)
        self._bias_O, self._zero_O = bias_O, torch.zeros(len(weight_OI), dtype=torch.long)

    def forward(self, x: Tensor) -> Tensor:
        x_NI = x.reshape(-1, x.shape[-1])
        most_N1 = torch.maximum(x_NI.amax(dim=1, keepdim=True), x_NI.amin(dim=1, keepdim=True).neg_())
        scale_N1 = most_N1.div_(_LEVELS).clamp_(min=_LEAST)
        q_NI = (x_NI * scale_N1.reciprocal()).round_().to(torch.int8).view(torch.uint8).bitwise_xor_(_ZERO)
        y_NO: Tensor = torch.ops.onednn.qlinear_pointwise(
            q_NI, 1.0, _ZERO, self._packed, self._scale_O, self._zero_O, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y_NO = y_NO.mul_(scale_N1) if self._bias_O is None else torch.addcmul(self._bias_O, y_NO, scale_N1)
        return y_NO.view(*x.shape[:-1], -1)


class Bfloat16Linear(nn.Module):
    """x W' + b with products of bfloat16, added up in float32."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        super().__init__()
        self._weight_OI, self._bias_O = weight_OI.bfloat16(), bias_O

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x.bfloat16(), self._weight_OI).float()
        return y if self._bias_O is None else y.add_(self._bias_O)


Product = type[Int8Linear] | type[Bfloat16Linear]


def joined(layers: list[nn.Linear], product: Product) -> Int8Linear | Bfloat16Linear:
    """One product for layers that read the same."""
    weight_OI = torch.cat([layer.weight.detach() for layer in layers])
    bias_O = None if layers[0].bias is None else torch.cat([layer.bias.detach() for layer in layers])
    return product(weight_OI, bias_O)


def replace_linears(model: nn.Module, product: Product) -> None:
    """Puts a product in place of every linear layer."""
    for module in list(model.modules()):
        for name, part in list(module.named_children()):
            if isinstance(part, nn.Linear):
                setattr(module, name, joined([part], product))
