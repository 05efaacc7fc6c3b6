"""The training loop: paper section 5, an update at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import torch
from torch import nn

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.train.config import TrainConfig
from dragoman.train.workers import Workers


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did."""

    step: int
    loss: float  # smoothed, in nats per target token
    n_tgt_tokens: int
    lr: float
    grad_norm: float


def updates(
    model: Transformer,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    lr_at: Callable[[int], float],
    config: TrainConfig,
    *,
    pad_id: int,
    done: int = 0,
) -> Generator[Update, None, None]:
    """Yields a record after each update, from update `done` + 1 on, for as long as there are batches."""
    stream, parameters = iter(batches), list(model.parameters())
    step = done
    with closing(Workers(model, config, pad_id)) as workers:
        while group := list(islice(stream, config.accumulate)):
            step += 1
            with workers.sharing():  # the norm too: added up by more threads, its last digit would be another
                loss, n_tokens = workers.gradient(group, step)
                grad_norm = _clip(parameters, config.clip_norm)
            if not (math.isfinite(loss) and math.isfinite(grad_norm)):
                raise _not_finite(step, loss, group)
            lr = lr_at(step)
            for group_of_weights in optimizer.param_groups:
                group_of_weights["lr"] = lr
            optimizer.step()
            optimizer.zero_grad()
            yield Update(step, loss, n_tokens, lr, grad_norm)


def _clip(parameters: list[nn.Parameter], clip_norm: float | None) -> float:
    """The norm of the whole gradient, which is then scaled down to `clip_norm` if that is given and smaller."""
    bound = math.inf if clip_norm is None else clip_norm
    return nn.utils.clip_grad_norm_(parameters, bound).item()


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
