"""What the training pass drops: its rate, its scale, and that chance is chance.

Every statistical bound is of five deviations, about one failure in two million draws; seeds are fixed, so a test that
passes once passes always.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from dragoman.train.packed.functions import Drops, add_and_norm, dropped

ROWS, WIDTH = 4000, 200
N = ROWS * WIDTH
RATES = [0.001, 0.1, 0.25, 0.3, 0.5, 0.9, 0.999]


def ones(n_rows: int = ROWS, width: int = WIDTH) -> Tensor:
    return torch.ones(n_rows, width)


def is_dropped(p: float, *seed: int, uses: int = 1) -> list[Tensor]:
    """Which values fall to several uses in a row, as numbers."""
    drops = Drops(p, seed or (0,))
    return [(dropped(ones(), drops.next()) == 0).double() for _ in range(uses)]


def is_near(mean: float, expected: float, variance: float, n: int) -> bool:
    return abs(mean - expected) < 5 * math.sqrt(variance / n)


def correlation(one: Tensor, other: Tensor) -> float:
    return torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1].item()


@pytest.mark.parametrize("p", RATES)
def test_the_rate_the_scale_and_the_mean(p: float) -> None:
    out = dropped(ones(), Drops(p, [0]).next()).double()
    assert is_near((out == 0).double().mean().item(), p, p * (1 - p), N)
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)], rel=1e-6)
    assert is_near(out.mean().item(), 1, p / (1 - p), N)  # a value is 1 / (1 - p) with probability 1 - p


def test_rate_zero_changes_nothing() -> None:
    x = torch.randn(30, 7)
    assert torch.equal(dropped(x, Drops(0.0, [0]).next()), x)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_every_row_and_every_column_has_the_same_rate(p: float) -> None:
    (which,) = is_dropped(p)
    for dim in (0, 1):
        rates = which.mean(dim=dim)
        spread = ((rates - p) ** 2).mean().item() / (p * (1 - p) / which.shape[dim])
        assert is_near(spread, 1, 2, len(rates))  # chi-squared over its degrees of freedom


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 7, 8, 16, 64, WIDTH, 1024, 65_536])
def test_neighbouring_values_are_dropped_independently(distance: int) -> None:
    which = is_dropped(0.3)[0].flatten()
    # The correlation of n independent pairs has deviation n^-0.5.
    assert is_near(correlation(which[:-distance], which[distance:]), 0, 1, N - distance)


def test_uses_and_seeds_are_independent_of_one_another() -> None:
    """Also those after the sixty-fourth, and seeds that differ in one bit."""
    uses = is_dropped(0.3, 1, 2, 3, uses=66)
    others = [*uses[1:3], *uses[63:], *(is_dropped(0.3, *seed)[0] for seed in ((1, 2, 4), (1, 3, 3), (2, 2, 3)))]
    for other in others:
        assert is_near(correlation(uses[0], other), 0, 1, N)
        for distance in (1, WIDTH):  # nor is one the other, moved
            moved = other.flatten()[distance:]
            assert is_near(correlation(uses[0].flatten()[:-distance], moved), 0, 1, N - distance)


def test_the_same_seed_drops_the_same() -> None:
    one, other = Drops(0.3, [5, 7]), Drops(0.3, [5, 7])
    for _ in range(3):
        assert torch.equal(dropped(ones(), one.next()), dropped(ones(), other.next()))
    dropped(ones(), Drops(0.3, [2**63 - 1, 10**7, 0]).next())  # the largest that a run can ask for


def test_the_gradient_is_that_of_what_was_kept() -> None:
    x, incoming = torch.randn(40, 11, requires_grad=True), torch.randn(40, 11)
    factor = dropped(ones(40, 11), Drops(0.3, [9]).next())
    out = dropped(x, Drops(0.3, [9]).next())
    torch.testing.assert_close(out, x * factor)
    (gradient,) = torch.autograd.grad(out, x, incoming)
    torch.testing.assert_close(gradient, incoming * factor)


def test_an_addition_drops_what_is_added_its_bias_included_and_nothing_else() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y, to_sum, to_normed = torch.randn(4, 60, 24, generator=generator)
    bias = torch.randn(24, generator=generator)
    norm = nn.LayerNorm(24)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    factor = dropped(ones(60, 24), Drops(0.4, [3]).next())
    inputs = [tensor.requires_grad_() for tensor in (x, y, bias)]
    expected = x + (y + bias) * factor
    found = add_and_norm(x, y, bias, norm, Drops(0.4, [3]).next(), torch.float32)
    for mine, torchs in zip(found, (expected, norm(expected)), strict=True):
        torch.testing.assert_close(mine, torchs)
    weights = [*inputs, norm.weight, norm.bias]
    gradients = torch.autograd.grad(found, weights, (to_sum, to_normed))
    for mine, torchs in zip(
        gradients, torch.autograd.grad((expected, norm(expected)), weights, (to_sum, to_normed)), strict=True
    ):
        torch.testing.assert_close(mine, torchs, rtol=1e-4, atol=1e-5)
