"""The loss: the formula in plain Python, torch's own parts, and its gradient by finite differences."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from dragoman.train.loss import smoothed_cross_entropy

PAD = 0


def by_hand(logits: list[list[float]], tgt_out: list[int], epsilon: float) -> float:
    """−Σ q(k) ln p(k) over words, with q(k) = (1 − ε)·[k = y] + ε / V; the entry of padding has its share too."""
    total = 0.0
    for row, y in zip(logits, tgt_out, strict=True):
        if y == PAD:
            continue
        log_z = math.log(sum(math.exp(value) for value in row))
        for k, value in enumerate(row):
            q = (1 - epsilon) * (k == y) + epsilon / len(row)
            total -= q * (value - log_z)
    return total


def make_logits(n: int = 6, v: int = 7) -> torch.Tensor:
    return 2 * torch.randn(n, v, dtype=torch.float64, generator=torch.Generator().manual_seed(n))


TGT_OUT = torch.tensor([3, PAD, 6, 1, PAD, 2])


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_formula(epsilon: float) -> None:
    logits = make_logits()
    loss = smoothed_cross_entropy(logits, TGT_OUT, label_smoothing=epsilon, pad_id=PAD)
    assert loss.item() == pytest.approx(by_hand(logits.tolist(), TGT_OUT.tolist(), epsilon), rel=1e-13)


def test_a_case_worked_out() -> None:
    """Uniform predictions cost ln V per word whatever the labels; a certain one costs what smoothing asks for."""
    uniform = torch.zeros(3, 4, dtype=torch.float64)
    for epsilon in (0.0, 0.1):
        loss = smoothed_cross_entropy(uniform, torch.tensor([1, 2, 0]), label_smoothing=epsilon, pad_id=PAD)
        assert loss.item() == pytest.approx(2 * math.log(4), rel=1e-14)
    sure = torch.tensor([[0.0, 100.0, 0.0, 0.0]], dtype=torch.float64)
    assert smoothed_cross_entropy(sure, torch.tensor([1]), label_smoothing=0.0, pad_id=PAD).item() < 1e-40
    smoothed = smoothed_cross_entropy(sure, torch.tensor([1]), label_smoothing=0.1, pad_id=PAD)
    assert smoothed.item() == pytest.approx(3 * 100 * 0.1 / 4, rel=1e-12)


def test_without_smoothing_it_is_the_negative_log_likelihood() -> None:
    logits = make_logits()
    expected = F.nll_loss(logits.log_softmax(-1), TGT_OUT, ignore_index=PAD, reduction="sum")
    loss = smoothed_cross_entropy(logits, TGT_OUT, label_smoothing=0.0, pad_id=PAD)
    torch.testing.assert_close(loss, expected, rtol=1e-14, atol=0)


def test_with_smoothing_it_is_the_divergence_from_the_smoothed_labels() -> None:
    """By torch's KL divergence plus the entropy of the labels: an independent way to the same number."""
    logits, words = make_logits(), TGT_OUT != PAD
    q = torch.full_like(logits, 0.1 / 7)
    q[torch.arange(6), TGT_OUT] += 0.9
    divergence = F.kl_div(logits.log_softmax(-1), q, reduction="none")[words].sum()
    entropy = -(q * q.log())[words].sum()
    loss = smoothed_cross_entropy(logits, TGT_OUT, label_smoothing=0.1, pad_id=PAD)
    torch.testing.assert_close(loss, divergence + entropy, rtol=1e-13, atol=0)


def test_padding_is_not_counted_and_gets_no_gradient() -> None:
    logits = make_logits().requires_grad_()
    loss = smoothed_cross_entropy(logits, TGT_OUT, label_smoothing=0.1, pad_id=PAD)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert not gradient[TGT_OUT == PAD].any()
    assert gradient[TGT_OUT != PAD].all()
    words = TGT_OUT != PAD
    alone = smoothed_cross_entropy(logits[words], TGT_OUT[words], label_smoothing=0.1, pad_id=PAD)
    torch.testing.assert_close(loss, alone, rtol=1e-15, atol=0)


def test_another_padding() -> None:
    logits = make_logits()
    loss = smoothed_cross_entropy(logits, torch.tensor([0, 5, 5, 1, 5, 5]), label_smoothing=0.1, pad_id=5)
    expected = smoothed_cross_entropy(logits[[0, 3]], torch.tensor([0, 1]), label_smoothing=0.1, pad_id=5)
    torch.testing.assert_close(loss, expected, rtol=1e-14, atol=0)
    nothing = smoothed_cross_entropy(logits[:2], torch.tensor([5, 5]), label_smoothing=0.1, pad_id=5)
    assert nothing.item() == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_gradient_by_finite_differences(epsilon: float) -> None:
    def loss(logits: torch.Tensor) -> torch.Tensor:
        return smoothed_cross_entropy(logits, TGT_OUT, label_smoothing=epsilon, pad_id=PAD)

    assert torch.autograd.gradcheck(loss, make_logits().requires_grad_(), atol=1e-8, rtol=1e-6)
