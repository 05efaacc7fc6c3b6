"""The training loss: cross-entropy against smoothed labels, paper section 5.4; and R-Drop, if asked for."""

# Letters: N tokens, D d_model, V vocabulary.

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

_VALUES_PER_CHUNK = 4_000_000  # logits in memory at a time; more would leave the processor's caches


def smoothed_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, tgt_out_N: Tensor, *, label_smoothing: float, r_drop: float = 0.0
) -> Tensor:
    """The sum over tokens of −Σ_k q(k) ln p(k), in nats: p = softmax(hidden · weight'), q(k) = (1 − ε)·[k = y] + ε / V.

    The smoothing mass is spread over all V entries, the true one included, as in Szegedy et al. 2015, whom the
    paper follows. Others differ without saying so: tensor2tensor and fairseq spread it over V − 1 entries,
    JoeyNMT and OpenNMT-py over V − 2 (neither the true entry nor padding). A caller leaves padding out, and divides
    by the number of target tokens of the whole update, once.

    With `r_drop` = α, rows 2i and 2i + 1 are the same token after different dropout, and α / 2 times their divergence
    in both directions, KL(p₂ᵢ ‖ p₂ᵢ₊₁) + KL(p₂ᵢ₊₁ ‖ p₂ᵢ), is added (Liang et al. 2021).
    """
    loss = _ProjectedLoss.apply(hidden_ND, weight_VD, tgt_out_N, label_smoothing, r_drop)  # type: ignore[no-untyped-call]
    return cast("Tensor", loss)


class _ProjectedLoss(torch.autograd.Function):
    """Projection and loss in one, a few hundred tokens at a time, with the gradient made on the way.

    The N x V logits, by far the largest tensor of a step, are never whole in memory: a chunk of them is made,
    turned into its loss and into the gradient p − q, multiplied into both gradients, and forgotten. The constant
    part ε / V of q would cost a pass over the chunk; it is a rank-one term of each gradient instead.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, tgt_out_N: Tensor, label_smoothing: float, r_drop: float
    ) -> Tensor:
        kind = hidden_ND.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_VD.dtype
        with torch.autocast(kind, enabled=False):
            loss, *gradients = _loss_and_gradients(hidden_ND, weight_VD, tgt_out_N, label_smoothing, r_drop, dtype)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_grad_ND, weight_grad_VD = ctx.saved_tensors
        return hidden_grad_ND * gradient, weight_grad_VD * gradient, None, None, None


def _loss_and_gradients(
    hidden_ND: Tensor, weight_VD: Tensor, tgt_out_N: Tensor, label_smoothing: float, r_drop: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and its gradients by hidden and weight; matrix products are made of `dtype`."""
    n_vocab = len(weight_VD)
    true, spread = 1 - label_smoothing, label_smoothing / n_vocab
    weight_sum_D = weight_VD.sum(dim=0)
    inputs_ND, matrix_VD = hidden_ND.to(dtype), weight_VD.to(dtype)
    hidden_grad_ND = torch.empty_like(inputs_ND)
    weight_grad_VD = torch.zeros_like(weight_VD)
    loss = weight_VD.new_zeros((), dtype=torch.float64)
    n_rows = 2 * max(1, _VALUES_PER_CHUNK // n_vocab // 2)  # even: two rows of one token stay together
    for hidden, hidden_grad, tgt_out in zip(
        *(torch.split(tensor, n_rows) for tensor in (inputs_ND, hidden_grad_ND, tgt_out_N[:, None])), strict=True
    ):
        logits = (hidden @ matrix_VD.T).to(weight_VD.dtype)
        logit, top = logits.gather(1, tgt_out), logits.amax(dim=1, keepdim=True)
        apart = logits[0::2] - logits[1::2] if r_drop else None
        probs = torch.softmax(logits, dim=1, out=logits)
        log_z = top - probs.amax(dim=1, keepdim=True).log()
        log_prob_sum = (hidden.to(weight_VD.dtype) @ weight_sum_D)[:, None] - n_vocab * log_z
        loss -= (true * (logit - log_z) + spread * log_prob_sum).sum(dtype=torch.float64)
        if apart is not None:
            loss += r_drop / 2 * _add_divergence(apart.sub_(log_z[0::2] - log_z[1::2]), probs, r_drop / 2)
        gradient = probs.scatter_add_(1, tgt_out, torch.full_like(logit, -true)).to(dtype)
        torch.mm(gradient, matrix_VD, out=hidden_grad)
        weight_grad_VD += gradient.T @ hidden
    hidden_grad_ND = hidden_grad_ND.to(weight_VD.dtype).sub_(spread * weight_sum_D).to(hidden_ND.dtype)
    weight_grad_VD.sub_(spread * hidden_ND.sum(dim=0))
    return loss.to(weight_VD.dtype), hidden_grad_ND, weight_grad_VD


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
