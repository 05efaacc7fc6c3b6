"""The training loss: cross-entropy against smoothed labels, paper section 5.4; and R-Drop, if asked for."""

# Letters: N tokens, D d_model, V vocabulary.

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from dragoman.train.packed import kernels
from dragoman.train.packed.functions import array
from dragoman.train.packed.products import product

_VALUES_PER_CHUNK = 4_000_000  # logits in memory at a time; more would leave the processor's caches


def smoothed_cross_entropy(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    tgt_out_N: Tensor,
    *,
    label_smoothing: float,
    r_drop: float = 0.0,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The sum over tokens of −Σ_k q(k) ln p(k), in nats: p = softmax(hidden · weight'), q(k) = (1 − ε)·[k = y] + ε / V.

    The smoothing mass is spread over all V entries, the true one included, as in Szegedy et al. 2015, whom the
    paper follows. Others differ without saying so: tensor2tensor and fairseq spread it over V − 1 entries,
    JoeyNMT and OpenNMT-py over V − 2 (neither the true entry nor padding). A caller leaves padding out, and divides
    by the number of target tokens of the whole update, once.

    With `r_drop` = α, rows 2i and 2i + 1 are the same token after different dropout, and α / 2 times their divergence
    in both directions, KL(p₂ᵢ ‖ p₂ᵢ₊₁) + KL(p₂ᵢ₊₁ ‖ p₂ᵢ), is added (Liang et al. 2021). Matrix products are made of
    `dtype`, which is that of the weight unless given.
    """
    settings = label_smoothing, r_drop, dtype or weight_VD.dtype
    loss = _ProjectedLoss.apply(hidden_ND, weight_VD, tgt_out_N, *settings)  # type: ignore[no-untyped-call]
    return cast("Tensor", loss)


class _ProjectedLoss(torch.autograd.Function):
    """Projection and loss in one, a few hundred tokens at a time, with the gradient made on the way.

    The N x V logits, by far the largest tensor of a step, are never whole in memory: a chunk of them is made,
    turned into its loss and into the gradient p − q, multiplied into both gradients, and forgotten. The constant
    part ε / V of q would cost a pass over the chunk; it is a rank-one term of each gradient instead.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        tgt_out_N: Tensor,
        label_smoothing: float,
        r_drop: float,
        dtype: torch.dtype,
    ) -> Tensor:
        loss, *gradients = _loss_and_gradients(hidden_ND, weight_VD, tgt_out_N, label_smoothing, r_drop, dtype)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        hidden_grad_ND, weight_grad_VD = ctx.saved_tensors
        return hidden_grad_ND * gradient, weight_grad_VD * gradient, None, None, None, None


def _loss_and_gradients(
    hidden_ND: Tensor, weight_VD: Tensor, tgt_out_N: Tensor, label_smoothing: float, r_drop: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and its gradients by hidden and weight; matrix products are made of `dtype`."""
    n_vocab = len(weight_VD)
    true, spread = 1 - label_smoothing, label_smoothing / n_vocab
    weight_sum_D = weight_VD.sum(dim=0)
    inputs_ND, matrix_VD = hidden_ND.to(dtype), weight_VD.to(dtype)
    hidden_grad_ND = torch.empty_like(inputs_ND)
    weight_grad_DV = torch.zeros_like(weight_VD.T, memory_format=torch.contiguous_format)
    loss = weight_VD.new_zeros((), dtype=torch.float64)
    n_rows = 2 * max(1, _VALUES_PER_CHUNK // n_vocab // 2)  # even: two rows of one token stay together
    for hidden, hidden_grad, tgt_out in zip(
        *(torch.split(tensor, n_rows) for tensor in (inputs_ND, hidden_grad_ND, tgt_out_N[:, None])), strict=True
    ):
        logits = product(hidden, matrix_VD.T)
        logit, top = (t.to(weight_VD.dtype) for t in (logits.gather(1, tgt_out), logits.amax(dim=1, keepdim=True)))
        powers, total, share, divergence = _powers(logits, top, r_drop)
        log_z = top + total.log()
        log_prob_sum = (hidden.to(weight_VD.dtype) @ weight_sum_D)[:, None] - n_vocab * log_z
        loss -= (true * (logit - log_z) + spread * log_prob_sum).sum(dtype=torch.float64)
        loss += r_drop / 2 * divergence
        # Rows of powers are not divided by their sums: dividing the narrow factor of each product costs less.
        gradient = powers.scatter_add_(1, tgt_out, (-true / share).to(powers.dtype)).to(dtype)
        torch.mul(product(gradient, matrix_VD), share, out=hidden_grad)
        weight_grad_DV += product((hidden * share).to(dtype).T, gradient)
    hidden_grad_ND = hidden_grad_ND.to(weight_VD.dtype).sub_(spread * weight_sum_D).to(hidden_ND.dtype)
    weight_grad_DV.sub_(spread * hidden_ND.sum(dim=0)[:, None])
    return loss.to(weight_VD.dtype), hidden_grad_ND, weight_grad_DV.T.contiguous()  # it is added to others that are


def _powers(logits: Tensor, top: Tensor, r_drop: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """In place of the logits: powers that are probabilities when they are multiplied by the share of their row.

    Then come the sum of exp(logit - top) over each row, the shares, and the divergence of all twin rows; its gradient,
    times `r_drop` / 2, is in the powers.
    """
    nothing = top.new_zeros(())
    if top.dtype == torch.float32 and not logits.is_cuda:
        total, divergence = torch.empty_like(top), torch.zeros_like(top)
        rows_NV, top_N, total_N = array(logits), array(top[:, 0]), array(total[:, 0])
        if not r_drop:
            kernels.powers(rows_NV, top_N, total_N)
            return logits, total, 1 / total, nothing
        kernels.powers_of_twins(rows_NV, top_N, total_N, np.float32(r_drop / 2), array(divergence[:, 0]))
        return logits, total, torch.ones_like(top), divergence.sum(dtype=torch.float64)
    logits = logits.to(top.dtype).sub_(top)
    apart = logits[0::2] - logits[1::2] if r_drop else nothing
    total = logits.exp_().sum(dim=1, keepdim=True)
    if not r_drop:
        return logits, total, 1 / total, nothing
    logits.div_(total)
    divergence = _add_divergence(apart.sub_(total[0::2].log() - total[1::2].log()), logits, r_drop / 2)
    return logits, total, torch.ones_like(top), divergence


def _add_divergence(apart: Tensor, probs: Tensor, factor: float) -> Tensor:
    """KL(p ‖ q) + KL(q ‖ p) of each two rows p and q, summed; its gradient by the logits, times `factor`, is added to
    `probs`. `apart` is ln p − ln q."""
    p, q = probs[0::2], probs[1::2]
    from_p, from_q = (p * apart).sum(dim=1, keepdim=True), -(q * apart).sum(dim=1, keepdim=True)
    grad_p = (apart - from_p).add_(1).mul_(p).sub_(q)
    grad_q = apart.neg_().sub_(from_q).add_(1).mul_(q).sub_(p)
    p.add_(grad_p, alpha=factor)
    q.add_(grad_q, alpha=factor)
    return (from_p + from_q).sum(dtype=torch.float64)
