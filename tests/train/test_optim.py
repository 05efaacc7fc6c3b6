"""Adam: its update by hand with the paper's constants, and its state to disk and back."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.train.config import TrainConfig
from dragoman.train.loop import updates
from dragoman.train.optim import make_optimizer, optimizer_tensors, restore_optimizer


class Numbers(nn.Module):
    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values, dtype=torch.float64))


def test_three_updates_by_hand() -> None:
    """Kingma and Ba's algorithm 1 with β1 = 0.9, β2 = 0.98, ε = 1e-9 (section 5.3), and a rate of its own each time."""
    start, gradients = [1.0, -2.0, 0.5], [[0.3, -0.1, 1e-6], [-0.2, 0.4, 0.0], [0.05, 0.05, -3.0]]
    rates = [1e-3, 5e-3, 2e-3]
    model = Numbers(start)
    optimizer = make_optimizer(model)
    for rate, gradient in zip(rates, gradients, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        model.values.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()

    expected = []
    for i, value in enumerate(start):
        m = v = 0.0
        for t, rate in enumerate(rates, 1):
            g = gradients[t - 1][i]
            m = 0.9 * m + 0.1 * g
            v = 0.98 * v + 0.02 * g * g
            value -= rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)) ** 0.5 + 1e-9)
        expected.append(value)
    assert model.values.tolist() == pytest.approx(expected, rel=1e-13)


def test_no_update_without_a_rate() -> None:
    """The rate is set before each update; forgetting it must not train at some default."""
    model = Numbers([1.0])
    model.values.grad = torch.ones(1, dtype=torch.float64)
    make_optimizer(model).step()
    assert model.values.item() == 1.0


def test_restored_state_continues_identically() -> None:
    batches = [batch_of(reversed_pairs(4, seed)) for seed in range(6)]
    config = TrainConfig(warmup_steps=4)

    def run(model, optimizer, some, done):
        return list(updates(model, some, optimizer, lambda step: 0.01 / step, config, pad_id=PAD, done=done))

    whole = make_model()
    whole_optimizer = make_optimizer(whole)
    all_updates = run(whole, whole_optimizer, batches, 0)

    first = make_model()
    first_optimizer = make_optimizer(first)
    run(first, first_optimizer, batches[:3], 0)
    weights = {name: value.clone() for name, value in first.state_dict().items()}
    tensors = {name: value.clone() for name, value in optimizer_tensors(first, first_optimizer).items()}
    assert tensors.keys() == {
        f"{moment}.{name}" for name, _ in first.named_parameters() for moment in ("exp_avg", "exp_avg_sq")
    }

    second = make_model(seed=99)
    second.load_state_dict(weights)
    second_optimizer = make_optimizer(second)
    restore_optimizer(second, second_optimizer, tensors, 3)
    assert run(second, second_optimizer, batches[3:], 3) == all_updates[3:]
    for name, value in whole.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name
    for name, value in optimizer_tensors(whole, whole_optimizer).items():
        assert torch.equal(value, optimizer_tensors(second, second_optimizer)[name]), name


def test_restoring_does_not_share_memory_with_what_was_loaded() -> None:
    model = make_model()
    optimizer = make_optimizer(model)
    tensors = {f"{m}.{n}": torch.ones_like(p) for n, p in model.named_parameters() for m in ("exp_avg", "exp_avg_sq")}
    restore_optimizer(model, optimizer, tensors, 5)
    list(updates(model, [batch_of(reversed_pairs(2, 0))], optimizer, lambda _: 0.1, TrainConfig(), pad_id=PAD))
    assert all((value == 1).all() for value in tensors.values())


def test_before_the_first_update_there_is_no_state() -> None:
    model = make_model()
    optimizer = make_optimizer(model)
    assert optimizer_tensors(model, optimizer) == {}
    restore_optimizer(model, optimizer, {}, 0)
    assert optimizer_tensors(model, optimizer) == {}
    with pytest.raises(KeyError):
        restore_optimizer(model, optimizer, {}, 1)
