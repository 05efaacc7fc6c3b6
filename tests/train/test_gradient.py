"""The gradient of a batch that is worked through in parts."""

from __future__ import annotations

import pytest
import torch
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.train import gradient
from dragoman.train.config import TrainConfig

# As the sampler hands them over: by length.
BATCH = batch_of(sorted(reversed_pairs(12, seed=1, longest=9), key=lambda pair: len(pair[1])))
N_VALUES = BATCH.tgt_out_BT.numel() * 16 * 2  # positions, width and layers of `make_model`


def loss_and_gradient(config: TrainConfig, dropout: float = 0.0) -> tuple[float, torch.Tensor, list[tuple[int, int]]]:
    """And the shapes of the target batches that passed through the model."""
    model, shapes = make_model(dropout=dropout).double(), []
    model.decoder[0].register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape[:2])))
    loss = gradient.add_gradient(model, BATCH, config, pad_id=PAD, n_tokens=7, step=1, number=0)
    return loss, torch.cat([parameter.grad.flatten() for parameter in model.parameters()]), shapes


def test_parts_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, whole_gradient, shapes = loss_and_gradient(TrainConfig())
    assert shapes == [tuple(BATCH.tgt_out_BT.shape)]
    monkeypatch.setattr(gradient, "_VALUES_AT_A_TIME", N_VALUES // 3)
    parted, parted_gradient, shapes = loss_and_gradient(TrainConfig())
    assert [rows for rows, _ in shapes] == [4, 4, 4]
    assert shapes[0][1] < shapes[-1][1] == BATCH.tgt_out_BT.shape[1]  # short sentences are not padded to the longest
    assert parted == pytest.approx(whole, rel=1e-12)
    torch.testing.assert_close(parted_gradient, whole_gradient, rtol=0, atol=1e-12)


def test_what_is_read_twice_is_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient, "_VALUES_AT_A_TIME", N_VALUES)
    assert [rows for rows, _ in loss_and_gradient(TrainConfig())[-1]] == [12]
    assert [rows for rows, _ in loss_and_gradient(TrainConfig(r_drop=3.0))[-1]] == [12, 12]  # two halves, each twice


def test_parts_drop_differently_and_again_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient, "_VALUES_AT_A_TIME", 1)
    one, other = (loss_and_gradient(TrainConfig(seed=seed), dropout=0.3) for seed in (1, 2))
    assert len(one[-1]) == len(BATCH.indices)  # never less than a pair
    assert one[0] != other[0]
    assert loss_and_gradient(TrainConfig(seed=1), dropout=0.3)[0] == one[0]
