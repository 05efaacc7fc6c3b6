"""The training loop: paper section 5, an update at a time."""

# Letters: B batch, T target length, V vocabulary.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import nn

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.train.config import TrainConfig
from dragoman.train.loss import smoothed_cross_entropy


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did."""

    step: int
    loss: float  # smoothed, in nats per target token
    n_tgt_tokens: int
    lr: float
    grad_norm: float


def updates(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    lr_at: Callable[[int], float],
    config: TrainConfig,
    *,
    pad_id: int,
    done: int = 0,
) -> Iterator[Update]:
    """Yields a record after each update, from update `done` + 1 on, for as long as there are batches."""
    device = next(model.parameters()).device
    stream = iter(batches)
    step = done
    while group := [batch.to(device) for batch in islice(stream, config.accumulate)]:
        step += 1
        model.train()
        loss, n_tokens = _backward(model, group, config.label_smoothing, pad_id)
        grad_norm = _clip(model, config.clip_norm)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            raise _not_finite(step, loss, group)
        lr = lr_at(step)
        for parameters in optimizer.param_groups:
            parameters["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()
        yield Update(step, loss, n_tokens, lr, grad_norm)


def _backward(model: nn.Module, group: Sequence[Batch], label_smoothing: float, pad_id: int) -> tuple[float, int]:
    """Loss per target token over all the batches of the update, whose gradient is left in the model."""
    n_tokens = sum(batch.n_tgt_tokens for batch in group)
    total = 0.0
    for batch in group:
        logits_BTV = model(batch.src_BS, batch.tgt_in_BT)
        loss_sum = smoothed_cross_entropy(
            logits_BTV.flatten(0, 1), batch.tgt_out_BT.flatten(), label_smoothing=label_smoothing, pad_id=pad_id
        )
        torch.autograd.backward(loss_sum / n_tokens)
        total += loss_sum.item()
    return total / n_tokens, n_tokens


def _clip(model: nn.Module, clip_norm: float | None) -> float:
    """The norm of the whole gradient, which is then scaled down to `clip_norm` if that is given and smaller."""
    bound = math.inf if clip_norm is None else clip_norm
    return nn.utils.clip_grad_norm_(model.parameters(), bound).item()


def _not_finite(step: int, loss: float, group: Sequence[Batch]) -> TrainingError:
    pairs = [int(i) for batch in group for i in batch.indices]
    shown = ", ".join(str(i) for i in pairs[:8]) + (", …" if len(pairs) > 8 else "")
    what = f"the loss is {loss}" if not math.isfinite(loss) else "the gradient is not finite"
    return TrainingError(
        f"{what} at step {step}, in the batch of the {len(pairs)} pairs {shown} (counted from 0 in the pairs kept); "
        "the model was not updated",
        hint="lower train.lr, lengthen train.warmup_steps or set train.clip_norm; --resume goes on from the last "
        "checkpoint, if there is one",
    )
