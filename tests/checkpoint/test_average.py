"""The mean of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.checkpoint.average import average_weights
from dragoman.checkpoint.format import save_tensors
from dragoman.errors import ModelError


def save_all(tmp_path: Path, *many: dict[str, torch.Tensor]) -> list[Path]:
    folders = [tmp_path / str(number) for number in range(len(many))]
    for folder, tensors in zip(folders, many, strict=True):
        folder.mkdir()
        save_tensors(folder / "model.safetensors", tensors)
    return folders


def test_the_mean_is_exact(tmp_path: Path) -> None:
    """That of double precision, rounded once: not what adding up single numbers would give."""
    values = [{"w": torch.randn(4, 5), "b": torch.tensor([x])} for x in (1e8, 1.0, -1e8, 3.0, 0.5)]
    found = average_weights(save_all(tmp_path, *values))
    assert found.keys() == {"w", "b"}
    assert found["w"].dtype == torch.float32
    assert torch.equal(found["w"], torch.stack([v["w"].double() for v in values]).sum(0).div(5).float())
    assert found["b"].item() == torch.tensor(0.9).item()


def test_one_is_its_own_mean_and_equals_are_too(tmp_path: Path) -> None:
    tensors = {"w": torch.randn(100), "half": torch.randn(7).bfloat16()}
    folders = save_all(tmp_path, tensors, tensors, tensors)
    for n in (1, 3):
        found = average_weights(folders[:n])
        assert all(torch.equal(found[name], tensors[name]) for name in tensors)
        assert found["half"].dtype == torch.bfloat16


@pytest.mark.parametrize(
    "other",
    [{"w": torch.zeros(4)}, {"v": torch.zeros(3)}, {"w": torch.zeros(3), "v": torch.zeros(3)}, {}],
    ids=["shape", "name", "more", "fewer"],
)
def test_another_model_is_refused(tmp_path: Path, other: dict[str, torch.Tensor]) -> None:
    folders = save_all(tmp_path, {"w": torch.zeros(3)}, other)
    with pytest.raises(ModelError, match=r"1 holds another model than .*0") as caught:
        average_weights(folders)
    assert caught.value.hint == "average checkpoints of one run"


def test_nothing_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no checkpoint to average"):
        average_weights([])
    with pytest.raises(ModelError, match=r"has no model\.safetensors"):
        average_weights([tmp_path])
