"""The loss: the formula in plain Python, torch's own parts, its gradients, and chunks and precisions of every kind."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train import loss as loss_module
from dragoman.train.loss import smoothed_cross_entropy


def by_hand(logits: list[list[float]], tgt_out: list[int], epsilon: float) -> float:
    """−Σ q(k) ln p(k) over tokens, with q(k) = (1 − ε)·[k = y] + ε / V; the entry of padding has its share too."""
    total = 0.0
    for row, y in zip(logits, tgt_out, strict=True):
        log_z = math.log(sum(math.exp(value) for value in row))
        for k, value in enumerate(row):
            q = (1 - epsilon) * (k == y) + epsilon / len(row)
            total -= q * (value - log_z)
    return total


def make_case(n: int = 6, d: int = 5, v: int = 7, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden (N, D) and weight (V, D), both to be differentiated, and the ids that should come out."""
    generator = torch.Generator().manual_seed(n + v)
    hidden = torch.randn(n, d, dtype=dtype, generator=generator).requires_grad_()
    weight = torch.randn(v, d, dtype=dtype, generator=generator).requires_grad_()
    return hidden, weight, torch.randint(v, (n,), generator=generator)


def plain(hidden: Tensor, weight: Tensor, tgt_out: Tensor, epsilon: float) -> Tensor:
    return F.cross_entropy(hidden @ weight.T, tgt_out, label_smoothing=epsilon, reduction="sum")


def logits_as_given(logits: list[list[float]], tgt_out: list[int], epsilon: float) -> float:
    """The loss of these very logits: the weight is the identity."""
    hidden = torch.tensor(logits, dtype=torch.float64)
    weight = torch.eye(hidden.shape[1], dtype=torch.float64)
    return smoothed_cross_entropy(hidden, weight, torch.tensor(tgt_out), label_smoothing=epsilon).item()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_formula(epsilon: float) -> None:
    hidden, weight, tgt_out = make_case()
    found = smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=epsilon)
    expected = by_hand((hidden @ weight.T).tolist(), tgt_out.tolist(), epsilon)
    assert found.item() == pytest.approx(expected, rel=1e-13)


def test_a_case_worked_out() -> None:
    """Uniform predictions cost ln V per word whatever the labels; a certain one costs what smoothing asks for."""
    for epsilon in (0.0, 0.1):
        assert logits_as_given([[0.0] * 4] * 2, [1, 2], epsilon) == pytest.approx(2 * math.log(4), rel=1e-14)
    sure = [[0.0, 100.0, 0.0, 0.0]]
    assert logits_as_given(sure, [1], 0.0) < 1e-40
    assert logits_as_given(sure, [1], 0.1) == pytest.approx(3 * 100 * 0.1 / 4, rel=1e-12)


def test_with_smoothing_it_is_the_divergence_from_the_smoothed_labels() -> None:
    """By torch's KL divergence plus the entropy of the labels: an independent way to the same number."""
    hidden, weight, tgt_out = make_case()
    log_probs = (hidden @ weight.T).log_softmax(-1)
    q = torch.full_like(log_probs, 0.1 / 7)
    q[torch.arange(6), tgt_out] += 0.9
    expected = F.kl_div(log_probs, q, reduction="sum") - (q * q.log()).sum()
    found = smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=0.1)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
@pytest.mark.parametrize(
    ("n", "values_per_chunk"),
    [
        (12, 2_000_000),  # one chunk
        (12, 4 * 11),  # three chunks of four
        (14, 4 * 11 + 10),  # the last one is half as long
        (13, 4 * 11),  # the last one is a single token
        (5, 3),  # a chunk is never less than one token
        (1, 2_000_000),
        (0, 2_000_000),  # a batch without a word in it
    ],
)
def test_value_and_gradients_are_the_plain_formulas(
    monkeypatch: pytest.MonkeyPatch, n: int, values_per_chunk: int, epsilon: float
) -> None:
    monkeypatch.setattr(loss_module, "_VALUES_PER_CHUNK", values_per_chunk)
    hidden, weight, tgt_out = make_case(n, 5, 11)
    found = smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=epsilon)
    expected = plain(hidden, weight, tgt_out, epsilon)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    # A factor from further on, as the division by the number of tokens is one.
    gradients = torch.autograd.grad(0.3 * found, (hidden, weight))
    for one, two in zip(gradients, torch.autograd.grad(0.3 * expected, (hidden, weight)), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def test_single_precision_in_chunks_of_their_real_size() -> None:
    """No less exact than the plain formula: both are held against double precision."""
    exact = make_case(100, 16, 50_000)
    expected = plain(*exact, 0.1)
    gradients = torch.autograd.grad(expected, exact[:2])
    hidden, weight = (tensor.detach().float().requires_grad_() for tensor in exact[:2])
    for loss in (
        smoothed_cross_entropy(hidden, weight, exact[2], label_smoothing=0.1),
        plain(hidden, weight, exact[2], 0.1),
    ):
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
        for one, two in zip(torch.autograd.grad(loss, (hidden, weight)), gradients, strict=True):
            assert (one - two).norm() < 1e-4 * two.norm()


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("values_per_chunk", [2_000_000, 2 * 7])
def test_gradient_by_finite_differences(monkeypatch: pytest.MonkeyPatch, values_per_chunk: int, epsilon: float) -> None:
    monkeypatch.setattr(loss_module, "_VALUES_PER_CHUNK", values_per_chunk)
    hidden, weight, tgt_out = make_case(5)

    def loss(hidden: Tensor, weight: Tensor) -> Tensor:
        return smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=epsilon)

    assert torch.autograd.gradcheck(loss, (hidden, weight), atol=1e-8, rtol=1e-6)


def test_it_leaves_its_inputs_alone() -> None:
    """Much is done in place inside."""
    hidden, weight, tgt_out = make_case()
    before = [tensor.detach().clone() for tensor in (hidden, weight, tgt_out)]
    smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=0.1).backward()
    for tensor, old in zip((hidden, weight, tgt_out), before, strict=True):
        assert torch.equal(tensor, old)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_huge_logits_do_not_overflow(dtype: torch.dtype) -> None:
    """exp(1e4) is infinite in any precision."""
    hidden = torch.tensor([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]], dtype=dtype, requires_grad=True)
    weight = torch.eye(3, dtype=dtype, requires_grad=True)
    loss = smoothed_cross_entropy(hidden, weight, torch.tensor([1, 0]), label_smoothing=0.0)
    assert loss.item() == pytest.approx(2e4 + math.log(3), rel=1e-6)
    smoothed = smoothed_cross_entropy(hidden, weight, torch.tensor([1, 0]), label_smoothing=0.1)
    # The first row costs 0.9 of 2e4 for its label, and a thirtieth of 2e4 and of 1e4 for the other two entries.
    assert smoothed.item() == pytest.approx(0.9 * 2e4 + (2e4 + 1e4) / 30 + math.log(3), rel=1e-6)
    for gradient in torch.autograd.grad(smoothed, (hidden, weight)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("hidden_dtype", [torch.float32, torch.bfloat16])
def test_products_of_bfloat16(hidden_dtype: torch.dtype) -> None:
    """Only the products are rounded, to 8 bits: sums and the loss stay in single precision."""
    hidden, weight, tgt_out = make_case(300, 64, 500, torch.float32)
    weight = (weight.detach() / 8).requires_grad_()  # logits of deviation one
    expected = smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=0.1)
    exact = torch.autograd.grad(expected, (hidden, weight))
    rounded = hidden.detach().to(hidden_dtype).requires_grad_()
    found = smoothed_cross_entropy(rounded, weight, tgt_out, label_smoothing=0.1, dtype=torch.bfloat16)
    gradients = torch.autograd.grad(found, (rounded, weight))
    assert found.dtype == torch.float32
    assert found.item() != expected.item()
    assert found.item() == pytest.approx(expected.item(), rel=0.02)
    assert [gradient.dtype for gradient in gradients] == [hidden_dtype, torch.float32]
    for one, two in zip(gradients, exact, strict=True):
        assert F.cosine_similarity(one.float().flatten(), two.flatten(), dim=0) > 0.999


@pytest.mark.parametrize("values_per_chunk", [2_000_000, 2 * 7, 3 * 7, 1])
def test_r_drop_is_the_divergence_in_both_directions(monkeypatch: pytest.MonkeyPatch, values_per_chunk: int) -> None:
    """Liang et al. 2021: cross-entropy of both, and α / 2 times KL one way and the other; with torch's own parts."""
    monkeypatch.setattr(loss_module, "_VALUES_PER_CHUNK", values_per_chunk)
    hidden, weight, tgt_out = make_case(10)
    tgt_out = tgt_out[:5].repeat_interleave(2)
    found = smoothed_cross_entropy(hidden, weight, tgt_out, label_smoothing=0.1, r_drop=3.0)
    one, two = ((hidden @ weight.T)[first::2].log_softmax(-1) for first in (0, 1))
    divergence = F.kl_div(one, two, log_target=True, reduction="sum") + F.kl_div(
        two, one, log_target=True, reduction="sum"
    )
    expected = plain(hidden, weight, tgt_out, 0.1) + 1.5 * divergence
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(found, (hidden, weight))
    for mine, torchs in zip(gradients, torch.autograd.grad(expected, (hidden, weight)), strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-12, atol=1e-12)


def test_r_drop_with_huge_logits() -> None:
    """Probabilities of zero have no logarithm; the divergence is made of logits, which have one."""
    hidden = torch.tensor([[1e3, -1e3, 0.0], [-1e3, 1e3, 0.0]], requires_grad=True)
    weight = torch.eye(3, requires_grad=True)
    loss = smoothed_cross_entropy(hidden, weight, torch.tensor([1, 1]), label_smoothing=0.0, r_drop=2.0)
    assert loss.item() == pytest.approx(2e3 + 2 * 2e3, rel=1e-6)
    for gradient in torch.autograd.grad(loss, (hidden, weight)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("r_drop", [0.0, 3.0])
@pytest.mark.parametrize("values_per_chunk", [4_000_000, 6 * 301])
def test_single_precision_is_double_precision_rounded(
    monkeypatch: pytest.MonkeyPatch, values_per_chunk: int, r_drop: float
) -> None:
    """On a processor loops of our own make the powers of float32, PyTorch those of anything else."""
    monkeypatch.setattr(loss_module, "_VALUES_PER_CHUNK", values_per_chunk)
    exact = make_case(40, 16, 301)
    tgt_out = exact[2][:20].repeat_interleave(2)
    rounded = [tensor.detach().float().requires_grad_() for tensor in exact[:2]]
    settings = {"label_smoothing": 0.1, "r_drop": r_drop}
    losses = [smoothed_cross_entropy(*inputs, tgt_out, **settings) for inputs in (rounded, exact[:2])]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-6)
    for one, two in zip(
        torch.autograd.grad(losses[0], rounded), torch.autograd.grad(losses[1], exact[:2]), strict=True
    ):
        torch.testing.assert_close(one.double(), two, rtol=0, atol=1e-5 * two.abs().max().item())
