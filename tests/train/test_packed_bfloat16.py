"""The loops give the same on rows of bfloat16 as on rows of float32, but for the rounding of what they write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.train.packed import kernels
from dragoman.train.packed.functions import Drops, array

ROWS, WIDTH = 37, 53  # neither a multiple of what a vector holds


def rows(*seeds: int, n: int = ROWS, width: int = WIDTH) -> list[Tensor]:
    """Of float32, every value one that bfloat16 has too."""
    found = [torch.randn(n, width, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return [each.bfloat16().float() for each in found]


def vector(seed: int) -> Tensor:
    return rows(seed, n=1)[0][0]


def check(loop: Callable[[Callable[[Tensor], Tensor]], list[Tensor]]) -> None:
    """`loop` makes its rows with the function given, and says what they and its sums hold at the end."""
    plain, brief = loop(torch.clone), loop(lambda tensor: tensor.bfloat16())
    assert {one.dtype for one in brief} >= {torch.bfloat16}
    for one, other in zip(plain, brief, strict=True):
        assert one.dtype == torch.float32
        if other.dtype == torch.bfloat16:
            assert torch.equal(one.bfloat16(), other)
        else:
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
        assert one.abs().sum() > 0


def test_relu() -> None:
    def forward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        y = as_rows(rows(1)[0])
        kernels.add_bias_and_relu(array(y), array(vector(2)))
        return [y]

    def backward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        out, grad, bias_grad = as_rows(rows(1)[0].relu()), as_rows(rows(2)[0]), torch.zeros(WIDTH)
        kernels.relu_back(array(out), array(grad), array(bias_grad))
        return [grad, bias_grad]

    check(forward)
    check(backward)
    y = rows(1)[0].bfloat16()
    kernels.add_bias_and_relu(array(y), array(vector(2)))
    assert torch.equal(y, (rows(1)[0] + vector(2)).relu().bfloat16())


def test_add_and_norm() -> None:
    drop = Drops(0.3, [1]).next()

    def forward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        y, out, total = as_rows(rows(2)[0]), as_rows(rows(3)[0]), torch.empty(ROWS, WIDTH)
        mean, rstd = torch.empty(2, ROWS)
        vectors = [array(vector(seed)) for seed in (4, 5, 6)]
        kernels.add_and_norm(
            array(rows(1)[0]), array(y), *vectors, drop, array(total), array(out), array(mean), array(rstd)
        )
        return [total, out, mean, rstd]

    def backward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        grad_out, grad_y = as_rows(rows(2)[0]), as_rows(rows(3)[0])
        grad_x, grads, (grad_sum, total) = torch.empty(ROWS, WIDTH), torch.zeros(3, WIDTH), rows(4, 5)
        mean, rstd = total.mean(dim=1), 1 / total.std(dim=1, correction=0)
        kernels.add_and_norm_back(
            array(grad_out), array(grad_sum), True, array(total), array(vector(6)), array(mean), array(rstd), drop,
            array(grad_x), array(grad_y), array(grads),
        )  # fmt: skip
        return [grad_x, grad_y, *grads]

    check(forward)
    check(backward)


def test_heads_apart_and_together() -> None:
    starts, n_heads, width = np.array([0, 5, 14, 15, ROWS]), 3, 4
    shape = (4 * n_heads, 22, width)

    def forward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        both = as_rows(rows(1)[0])
        q, k, v = torch.empty(shape), torch.empty(shape).mT.contiguous(), torch.empty(shape)
        kernels.heads_to_look(array(both), array(both), (12, 24), starts, starts, array(q), array(k), array(v))
        out = as_rows(torch.zeros(ROWS, n_heads * width))
        kernels.heads_looked(array(v), starts, array(out))
        assert torch.equal(out.float(), both[:, 24:36].float())
        return [q, k, v, out]

    def backward(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        both, grad = as_rows(rows(1)[0]), as_rows(rows(2)[0])
        q, k, v, g = torch.empty(shape), torch.empty(shape), torch.empty(shape).mT.contiguous(), torch.empty(shape)
        arrays = [array(each) for each in (q, k, v, g)]
        kernels.heads_to_learn(array(both), array(both), array(grad), (12, 24), starts, starts, *arrays)
        grads = as_rows(torch.zeros(ROWS, 36))
        kernels.heads_learned(array(q), array(k), array(g), (12, 24), starts, starts, array(grads), array(grads))
        return [q, k, v, g, grads]

    check(forward)
    check(backward)


@pytest.mark.parametrize("are_twins", [False, True])
def test_powers(are_twins: bool) -> None:
    """Sums are those of powers that are not rounded yet."""

    def loop(as_rows: Callable[[Tensor], Tensor]) -> list[Tensor]:
        logits = as_rows(rows(1, n=36)[0])
        top = logits.float().amax(dim=1)
        total, divergence = torch.empty(36), torch.zeros(36)
        if are_twins:
            kernels.powers_of_twins(array(logits), array(top), array(total), np.float32(1.5), array(divergence))
            return [logits, total, divergence]
        kernels.powers(array(logits), array(top), array(total))
        return [logits, total]

    check(loop)


def test_rounding_is_torchs() -> None:
    """To the nearest, halfway to the even one; zeros of both signs, infinity and NaN stay what they are."""
    bits = torch.randint(-(2**31), 2**31 - 1, (400, WIDTH), generator=torch.Generator().manual_seed(3))
    some, halfway = bits.to(torch.int32), bits.to(torch.int32) & -0x10000 | 0x8000
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-40, -1e-40, 3.4e38]).repeat(400, 7)[:, :WIDTH]
    for values in (some.view(torch.float32), halfway.view(torch.float32), odd):
        values[values.isnan()] = torch.nan  # of all that there are the one that operations give
        heads = values.clone()[None]  # one head of one sentence, copied as it is
        out = torch.empty(400, WIDTH, dtype=torch.bfloat16)
        kernels.heads_looked(array(heads), np.array([0, 400]), array(out))
        expected = values.bfloat16()
        assert torch.equal(out.isnan(), expected.isnan())
        assert torch.equal(out.nan_to_num(), expected.nan_to_num())
