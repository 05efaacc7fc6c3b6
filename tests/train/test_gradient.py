"""The gradient that compiled layers make."""

from __future__ import annotations

import shutil

import pytest
import torch
from toy_tasks import PAD, batch_of, make_model

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.train import gradient
from dragoman.train.config import TrainConfig

TORCH_S_OWN_WARNINGS = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # at its import


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
