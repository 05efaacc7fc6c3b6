"""The gradient of one batch: forward, loss, backward."""

# Letters: B batch, T target length, N target tokens, D d_model; 2 stands for one or two readings.

from __future__ import annotations

import numpy as np
import torch

from dragoman.batches.batch import Batch
from dragoman.model.dropout import seed_dropout
from dragoman.model.transformer import Transformer
from dragoman.train.config import TrainConfig
from dragoman.train.loss import smoothed_cross_entropy

# What the layers put down for the way back, in positions x width x layers. A larger batch is worked through in parts:
# they pass through the processor's caches just as well, with less padding, and memory does not grow with the batch.
_VALUES_AT_A_TIME = 8_000_000


def add_gradient(
    model: Transformer, batch: Batch, config: TrainConfig, *, pad_id: int, n_tokens: int, step: int, number: int
) -> float:
    """The sum of the batch's losses, whose gradient, divided by `n_tokens`, is added to the model's.

    What is dropped depends on the seed, the step and the batch's number in it, and on nothing else: a run that goes
    on after a kill, or that is spread over several processes, drops the same.
    """
    if not model.training:
        model.train()
    seed_dropout(model, int(np.random.SeedSequence([config.seed, step, number]).generate_state(1, np.uint64)[0]))
    n_parts = _n_parts(model, batch, 2 if config.r_drop else 1)
    parts = batch.parts(n_parts, pad_id=pad_id) if n_parts > 1 else [batch]
    return sum(_add_gradient(model, part, config, pad_id, n_tokens) for part in parts)


def _n_parts(model: Transformer, batch: Batch, n_times: int) -> int:
    if batch.src_BS.is_cuda:  # which is quickest with all of it at once
        return 1
    shape = model.config
    n_values = n_times * batch.tgt_out_BT.numel() * shape.d_model * (shape.n_encoder_layers + shape.n_decoder_layers)
    return min(len(batch.src_BS), -(-n_values // _VALUES_AT_A_TIME))


def _add_gradient(model: Transformer, batch: Batch, config: TrainConfig, pad_id: int, n_tokens: int) -> float:
    # R-Drop wants each sentence twice, dropped differently, and the two rows of a token side by side.
    n_times = 2 if config.r_drop else 1
    is_word_BT = batch.tgt_out_BT != pad_id
    with torch.autocast(is_word_BT.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        hidden_BTD = model.hidden(batch.src_BS.repeat(n_times, 1), batch.tgt_in_BT.repeat(n_times, 1))
        hidden_2ND = hidden_BTD[is_word_BT.repeat(n_times, 1)].view(n_times, -1, hidden_BTD.shape[-1])
        loss_sum = (
            smoothed_cross_entropy(
                hidden_2ND.transpose(0, 1).flatten(0, 1),
                model.output_weight_VD,
                batch.tgt_out_BT[is_word_BT].repeat_interleave(n_times),
                label_smoothing=config.label_smoothing,
                r_drop=config.r_drop,
            )
            / n_times
        )
    torch.autograd.backward(loss_sum / n_tokens)
    return loss_sum.item()
