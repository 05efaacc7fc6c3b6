"""The gradient of a batch that is worked through in parts, or by compiled layers."""

from __future__ import annotations

import shutil

import pytest
import torch
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.train import gradient
from dragoman.train.config import TrainConfig

# As the sampler hands them over: by length.
BATCH = batch_of(sorted(reversed_pairs(12, seed=1, longest=9), key=lambda pair: len(pair[1])))
N_VALUES = BATCH.tgt_out_BT.numel() * 16 * 2  # positions, width and layers of `make_model`

TORCH_S_OWN_WARNINGS = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # at its import


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


def long_batch(n_pairs: int, length: int) -> Batch:
    """Sentences so long that a processor attends by the kernel that a GPU always takes."""
    ids = [[3 + (i + j) % 7 for j in range(length)] for i in range(n_pairs)]
    return batch_of([(row, row[::-1]) for row in ids])


@TORCH_S_OWN_WARNINGS
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile wants a compiler")
def test_compiled_layers_teach_the_same() -> None:
    """Compiled once for batches of all shapes. Only a GPU trains so, and there is none here; float64 takes its path."""
    torch._dynamo.utils.counters.clear()
    model = make_model(max_len_tokens=128).double()
    for batch in (long_batch(3, 50), long_batch(5, 61), long_batch(2, 77)):
        found = []
        for config in (TrainConfig(), TrainConfig(compile=True)):
            model.zero_grad()
            loss = gradient.add_gradient(model, batch, config, pad_id=PAD, n_tokens=7, step=1, number=0)
            found.append((loss, [parameter.grad.clone() for parameter in model.parameters()]))
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-10)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@TORCH_S_OWN_WARNINGS
def test_what_cannot_be_compiled_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("no-such-compiler",))
    monkeypatch.setattr("torch._inductor.config.force_disable_caches", True)
    with pytest.raises(TrainingError, match=r"^torch\.compile has failed: .*\w"):
        gradient.add_gradient(
            make_model().double(),
            long_batch(2, 50),
            TrainConfig(compile=True),
            pad_id=PAD,
            n_tokens=7,
            step=1,
            number=0,
        )
