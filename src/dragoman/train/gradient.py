"""The gradient of one batch: forward, loss, backward."""

# Letters: B batch, T target length, N target tokens, D d_model; 2 stands for one or two readings.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.train.config import TrainConfig
from dragoman.train.loss import smoothed_cross_entropy
from dragoman.train.packed.forward import hidden_of, pack
from dragoman.train.packed.functions import Drops


def add_gradient(
    model: Transformer, batch: Batch, config: TrainConfig, *, pad_id: int, n_tokens: int, step: int, number: int
) -> float:
    """The sum of the batch's losses, whose gradient, divided by `n_tokens`, is added to the model's.

    What is dropped depends on the seed, the step and the batch's number in it, and on nothing else: a run that goes
    on after a kill, or that is spread over several processes, drops the same.
    """
    if not model.training:
        model.train()
    n_times = 2 if config.r_drop else 1  # R-Drop wants each sentence twice, dropped differently
    dtype = torch.bfloat16 if config.precision == "bfloat16" else model.embedding.weight.dtype  # of products
    forward = _forward(model, config, dtype, [config.seed, step, number], n_times, pad_id)
    tgt_out_N = batch.tgt_out_BT[batch.tgt_out_BT != pad_id]
    with _compiling() if config.compile else nullcontext():
        hidden_2ND = forward(batch).view(n_times, len(tgt_out_N), -1)
        loss_sum = (
            smoothed_cross_entropy(
                hidden_2ND.transpose(0, 1).flatten(0, 1),  # the two rows of a token side by side
                model.output_weight_VD,
                tgt_out_N.repeat_interleave(n_times),
                label_smoothing=config.label_smoothing,
                r_drop=config.r_drop,
                dtype=dtype,
            )
            / n_times
        )
        torch.autograd.backward(loss_sum / n_tokens)
    return loss_sum.item()


def _forward(
    model: Transformer, config: TrainConfig, dtype: torch.dtype, seed: Sequence[int], n_times: int, pad_id: int
) -> Callable[[Batch], Tensor]:
    """What gives the rows that logits are projected from, (2N, D): those of every reading one after the other."""
    weight = model.embedding.weight
    if weight.dtype == torch.float32 and not weight.is_cuda:
        drops = Drops(model.config.dropout, seed)

        def without_padding(batch: Batch) -> Tensor:
            src = pack(batch.src_BS, batch.src_BS != pad_id, n_times)
            return hidden_of(model, src, pack(batch.tgt_in_BT, batch.tgt_out_BT != pad_id, n_times), drops, dtype)

        return without_padding

    torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))
    hidden = _compiled(model) if config.compile else model.hidden

    def with_padding(batch: Batch) -> Tensor:
        with torch.autocast(weight.device.type, dtype, enabled=dtype != weight.dtype):
            hidden_BTD = hidden(batch.src_BS.repeat(n_times, 1), batch.tgt_in_BT.repeat(n_times, 1))
        return hidden_BTD[(batch.tgt_out_BT != pad_id).repeat(n_times, 1)]

    return with_padding


@lru_cache(maxsize=1)
def _compiled(model: Transformer) -> Callable[[Tensor, Tensor], Tensor]:
    """`model.hidden`, compiled at its first use for batches of any shape."""
    return torch.compile(model.hidden, dynamic=True)


@contextmanager
def _compiling() -> Iterator[None]:
    """What torch.compile cannot do on this machine is said in a sentence."""
    from torch._dynamo.exc import TorchDynamoException  # takes long to load

    try:
        yield
    except TorchDynamoException as error:
        reason = next((line for line in str(error).splitlines() if line), type(error).__name__)
        raise TrainingError(
            f"torch.compile has failed: {reason}", hint="leave train.compile out, or install what it asks for"
        ) from error
