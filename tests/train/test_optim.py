"""Adam and Muon: their updates by hand, and their state to disk and back."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.train.config import OptimizerName, TrainConfig
from dragoman.train.loop import updates
from dragoman.train.optim import make_optimizer, optimizer_tensors, restore_optimizer


class Numbers(nn.Module):
    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values, dtype=torch.float64))


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def test_three_updates_by_hand() -> None:
    """Kingma and Ba's algorithm 1 with β1 = 0.9, β2 = 0.98, ε = 1e-9 (section 5.3), and a rate of its own each time."""
    start, gradients = [1.0, -2.0, 0.5], [[0.3, -0.1, 1e-6], [-0.2, 0.4, 0.0], [0.05, 0.05, -3.0]]
    rates = [1e-3, 5e-3, 2e-3]
    model = Numbers(start)
    optimizer = make_optimizer(model, TrainConfig())
    for rate, gradient in zip(rates, gradients, strict=True):
        set_rate(optimizer, rate)
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


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_no_update_without_a_rate(name: OptimizerName) -> None:
    """The rate is set before each update; forgetting it must not train at some default."""
    model = nn.Linear(2, 3)
    before = [parameter.clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    make_optimizer(model, TrainConfig(optimizer=name)).step()
    for parameter, value in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, value)


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_muon_moves_every_direction_of_a_matrix_alike(shape: tuple[int, int]) -> None:
    """What is added has the gradient's singular vectors, but singular values near one size, uneven as they were."""
    rate = 0.02
    torch.manual_seed(3)
    left, right = (torch.linalg.qr(torch.randn(n, n, dtype=torch.float64))[0] for n in shape)
    uneven = torch.zeros(shape, dtype=torch.float64)
    uneven.diagonal().copy_(torch.logspace(0, -1.5, min(shape)))
    model = nn.Linear(shape[1], shape[0], dtype=torch.float64)
    optimizer = make_optimizer(model, TrainConfig(optimizer="muon"))
    before = model.weight.detach().clone()
    set_rate(optimizer, rate)
    model.weight.grad = left @ uneven @ right.T
    optimizer.step()

    moved = left.T @ (before - model.weight.detach()) @ right
    values = moved.diagonal().clone()
    moved.diagonal().zero_()
    assert moved.abs().max() < 1e-9, "the singular vectors stay"
    even = rate * 0.15 * max(shape) ** 0.5  # so that the mean square of its entries is that of 0.15 * rate
    assert values.min() > 0.6 * even
    assert values.max() < 1.3 * even


def test_three_updates_of_muon_by_hand() -> None:
    """The mean of the gradients, Nesterov's look ahead, and an orthogonal matrix: of rotations, a rotation."""
    gradients = [
        torch.tensor([[c, -s], [s, c]]) * size for c, s, size in [(1.0, 0.0, 2.0), (0.0, 1.0, 1.0), (0.6, 0.8, 3.0)]
    ]
    model = nn.Linear(2, 2)
    optimizer = make_optimizer(model, TrainConfig(optimizer="muon"))
    expected, mean = model.weight.detach().clone(), torch.zeros(2, 2)
    for rate, gradient in zip([0.1, 0.2, 0.05], gradients, strict=True):
        set_rate(optimizer, rate)
        model.weight.grad = gradient.clone()
        optimizer.step()
        mean = 0.95 * mean + 0.05 * gradient
        ahead = 0.05 * gradient + 0.95 * mean
        value = 0.5**0.25  # of both singular values, once the matrix is divided by the root of its gram matrix's norm
        for _ in range(4):
            value = 3.4445 * value - 4.7750 * value**3 + 2.0315 * value**5
        expected -= rate * 0.15 * 2**0.5 * value * ahead / torch.linalg.svdvals(ahead)[0]
    torch.testing.assert_close(model.weight.detach(), expected, rtol=1e-5, atol=1e-6)


def test_muon_leaves_embeddings_norms_and_biases_to_adam() -> None:
    found = {}
    for name in ("adam", "muon"):
        model = make_model()
        config = TrainConfig(optimizer=name)
        list(
            updates(
                model,
                [batch_of(reversed_pairs(4, 0))],
                make_optimizer(model, config),
                lambda _: 0.01,
                config,
                pad_id=PAD,
            )
        )
        found[name] = model.state_dict()
    same = {name for name, value in found["adam"].items() if torch.equal(value, found["muon"][name])}
    weights = {name for name, value in found["adam"].items() if value.ndim == 2 and "embedding" not in name}
    assert same == found["adam"].keys() - weights


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_the_matrices_of_the_layers_decay_and_nothing_else(name: OptimizerName) -> None:
    model = make_model()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimizer = make_optimizer(model, TrainConfig(optimizer=name, weight_decay=0.3))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for rate in (0.1, 0.2):
        set_rate(optimizer, rate)
        optimizer.step()
    for weight, value in model.named_parameters():
        is_matrix = value.ndim == 2 and "embedding" not in weight
        kept = (1 - 0.1 * 0.3) * (1 - 0.2 * 0.3) if is_matrix else 1.0
        torch.testing.assert_close(value.detach(), kept * before[weight], rtol=1e-6, atol=0, msg=weight)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_restored_state_continues_identically(name: OptimizerName) -> None:
    batches = [batch_of(reversed_pairs(4, seed)) for seed in range(6)]
    config = TrainConfig(warmup_steps=4, optimizer=name)

    def run(model, optimizer, some, done):
        return list(updates(model, some, optimizer, lambda step: 0.01 / step, config, pad_id=PAD, done=done))

    whole = make_model()
    whole_optimizer = make_optimizer(whole, config)
    all_updates = run(whole, whole_optimizer, batches, 0)

    first = make_model()
    first_optimizer = make_optimizer(first, config)
    run(first, first_optimizer, batches[:3], 0)
    weights = {name: value.clone() for name, value in first.state_dict().items()}
    tensors = {name: value.clone() for name, value in optimizer_tensors(first, first_optimizer).items()}
    kinds = {"adam": {"exp_avg", "exp_avg_sq"}, "muon": {"exp_avg", "exp_avg_sq", "momentum"}}
    assert {key.split(".")[0] for key in tensors} == kinds[name]
    assert {key.split(".", 1)[1] for key in tensors} == {weight for weight, _ in first.named_parameters()}

    second = make_model(seed=99)
    second.load_state_dict(weights)
    second_optimizer = make_optimizer(second, config)
    restore_optimizer(second, second_optimizer, tensors, 3)
    assert run(second, second_optimizer, batches[3:], 3) == all_updates[3:]
    for key, value in whole.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key
    for key, value in optimizer_tensors(whole, whole_optimizer).items():
        assert torch.equal(value, optimizer_tensors(second, second_optimizer)[key]), key


def test_restoring_does_not_share_memory_with_what_was_loaded() -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainConfig())
    tensors = {f"{m}.{n}": torch.ones_like(p) for n, p in model.named_parameters() for m in ("exp_avg", "exp_avg_sq")}
    restore_optimizer(model, optimizer, tensors, 5)
    list(updates(model, [batch_of(reversed_pairs(2, 0))], optimizer, lambda _: 0.1, TrainConfig(), pad_id=PAD))
    assert all((value == 1).all() for value in tensors.values())


def test_before_the_first_update_there_is_no_state() -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainConfig())
    assert optimizer_tensors(model, optimizer) == {}
    restore_optimizer(model, optimizer, {}, 0)
    assert optimizer_tensors(model, optimizer) == {}
    with pytest.raises(KeyError):
        restore_optimizer(model, optimizer, {}, 1)
