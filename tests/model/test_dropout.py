"""Dropout: its rate, its scale, its seed, and the bytes it is made of.

Every statistical bound is of five deviations, about one failure in two million draws; seeds are fixed, so a test that
passes once passes always.
"""

from __future__ import annotations

import copy
import math

import pytest
import torch
from small_models import sentences, small_model
from torch import Tensor, nn

from dragoman.model.dropout import Dropout, seed_dropout

N = 800_000
RATES = [0.001, 0.1, 0.25, 0.3, 0.5, 0.9, 0.999]


def seeded(p: float, seed: int = 0) -> Dropout:
    dropout = Dropout(p).train()
    seed_dropout(dropout, seed)
    return dropout


def real_rate(p: float) -> float:
    """The nearest multiple of 1/256, but neither 0 nor 1."""
    return min(max(1, round(256 * p)), 255) / 256


def is_near(mean: float, expected: float, variance: float, n: int) -> bool:
    return abs(mean - expected) < 5 * math.sqrt(variance / n)


@pytest.mark.parametrize("p", RATES)
def test_the_rate_and_the_mean(p: float) -> None:
    q = real_rate(p)
    out = seeded(p)(torch.ones(N, dtype=torch.float64))
    assert is_near((out == 0).double().mean().item(), q, q * (1 - q), N)
    assert is_near(out.mean().item(), 1, q / (1 - q), N)  # a value is 1 / (1 - q) with probability 1 - q


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_scale_is_exactly_that_of_the_rounded_rate(p: float, dtype: torch.dtype) -> None:
    kept = torch.tensor(1 / (1 - real_rate(p)), dtype=torch.float64).to(dtype)
    ones = torch.ones(40_000, dtype=dtype)
    for out in (seeded(p)(ones), seeded(p).add(torch.zeros_like(ones), ones)):
        assert out.dtype == dtype
        assert torch.equal(out.unique(), torch.stack([torch.zeros_like(kept), kept]))


def test_a_tenth_is_26_of_256() -> None:
    assert real_rate(0.1) == 26 / 256
    assert seeded(0.1)(torch.ones(1000)).max().item() == pytest.approx(256 / 230, rel=1e-7)


@pytest.mark.parametrize("p", [0.1, 0.4, 0.5, 0.7])
def test_all_eight_bytes_of_a_word_have_the_same_rate(p: float) -> None:
    """Random int64 values of PyTorch are below 2^63 unless asked otherwise: the top byte, and with it every eighth
    value, would lie below 128 and be dropped twice as often."""
    q = real_rate(p)
    dropped = (seeded(p)(torch.ones(N)) == 0).double().view(-1, 8)
    for lane, rate in enumerate(dropped.mean(dim=0).tolist()):
        assert is_near(rate, q, q * (1 - q), N // 8), lane


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 7, 8, 9, 16, 64, 512])
def test_neighbouring_values_are_dropped_independently(distance: int) -> None:
    dropped = (seeded(0.3)(torch.ones(N)) == 0).double()
    pair = torch.stack([dropped[:-distance], dropped[distance:]])
    # The correlation of n independent pairs has deviation n^-0.5.
    assert is_near(torch.corrcoef(pair)[0, 1].item(), 0, 1, N - distance)


def test_two_calls_are_independent() -> None:
    dropout = seeded(0.3)
    calls = torch.stack([(dropout(torch.ones(N)) == 0).double() for _ in range(2)])
    assert is_near(torch.corrcoef(calls)[0, 1].item(), 0, 1, N)


def test_the_same_seed_drops_the_same() -> None:
    x = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    one, two = seeded(0.3, seed=5), seeded(0.3, seed=5)
    for _ in range(3):
        assert torch.equal(one(x), two(x))
        assert torch.equal(one.add(x, x), two.add(x, x))
    assert not torch.equal(seeded(0.3, seed=5)(x), seeded(0.3, seed=6)(x))
    seeded(0.3, seed=2**64 - 1)(x)  # the largest that a run can ask for


def test_both_ways_to_drop_drop_the_same() -> None:
    x, y = torch.randn(2, 30, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(seeded(0.3).add(x, y), x + seeded(0.3)(y), rtol=0, atol=1e-14)


def test_seeding_a_model_seeds_all_of_it_and_nothing_else() -> None:
    """Bit for bit the same forward pass, whatever PyTorch's own generator is at, which it leaves alone."""
    model, batch = small_model(dropout=0.4).train(), (sentences(3, 6), sentences(3, 5, seed=1))
    outs: list[Tensor] = []
    for torch_seed in (1, 2):
        torch.manual_seed(torch_seed)
        state = torch.get_rng_state()
        seed_dropout(model, 9)
        outs.append(model(*batch))
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(*outs)
    assert not torch.equal(model(*batch), outs[0])  # the generator goes on
    assert len({id(module.generator) for module in model.modules() if isinstance(module, Dropout)}) == 1


def test_without_a_seed_pytorchs_own_counts() -> None:
    outs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(Dropout(0.5).train()(torch.ones(200)))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


@pytest.mark.parametrize(("p", "is_training"), [(0.0, True), (0.0, False), (0.5, False)])
def test_nothing_is_dropped_when_evaluating_or_at_rate_zero(p: float, is_training: bool) -> None:
    dropout = seeded(p).train(is_training)
    assert dropout.generator is not None
    state = dropout.generator.get_state()
    x, y = torch.randn(2, 5, 6)
    assert dropout(x) is x
    assert torch.equal(dropout.add(x, y), x + y)
    assert torch.equal(dropout.generator.get_state(), state), "nothing is drawn"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_gradient_is_the_mask_times_the_scale(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y, incoming = torch.randn(3, 9, 11, dtype=dtype, generator=generator)
    x.requires_grad_()
    y.requires_grad_()
    factor = seeded(0.3)(torch.ones(9, 11, dtype=dtype))  # zero or the scale
    (gradient,) = torch.autograd.grad(seeded(0.3)(y), y, incoming)
    assert torch.equal(gradient, incoming * factor)
    through_x, through_y = torch.autograd.grad(seeded(0.3).add(x, y), (x, y), incoming)
    assert torch.equal(through_x, incoming)
    torch.testing.assert_close(through_y, incoming * factor)  # one product more, and so one rounding


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (9,), (3, 5), (2, 3, 17), (0,), (4, 0)])
def test_sizes_that_are_not_whole_words(shape: tuple[int, ...]) -> None:
    for out in (seeded(0.5)(torch.ones(shape)), seeded(0.5).add(torch.zeros(shape), torch.ones(shape))):
        assert out.shape == shape
        assert set(out.flatten().tolist()) <= {0.0, 2.0}


def test_values_that_do_not_lie_in_order() -> None:
    """A transposed tensor is dropped by place, not by where it lies in memory."""
    x = torch.arange(1.0, 61.0).view(6, 10)
    assert torch.equal(seeded(0.5)(x.T), seeded(0.5)(x.T.contiguous()))


def test_a_model_with_a_seed_can_be_copied() -> None:
    model: nn.Module = small_model(dropout=0.4).train()
    seed_dropout(model, 4)
    twin, batch = copy.deepcopy(model), (sentences(2, 5), sentences(2, 4, seed=1))
    assert torch.equal(model(*batch), twin(*batch))
