"""`dragoman average`: a model folder or a weights file, ready for use."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from small_run import Corpus

from dragoman.cli.main import run as run_command


@pytest.fixture
def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").iterdir())[-3:]


def test_a_folder_that_translates(
    run: Path, corpus: Corpus, checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "average"
    assert run_command(["average", *map(str, checkpoints), "--out", str(out)]) == 0
    assert capsys.readouterr() == ("", f"average of 3 checkpoints: {out}\n")
    assert sorted(path.name for path in out.iterdir()) == ["config.toml", "model.safetensors", "subwords.model"]
    check_mean(out / "model.safetensors", checkpoints)
    assert run_command(["translate", "--model", str(out), "--threads", "1", str(corpus.valid_src)]) == 0
    assert capsys.readouterr().out.count("\n") == 8


def test_a_weights_file_that_fits_a_run(
    run: Path, corpus: Corpus, checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "average.safetensors"
    assert run_command(["average", *map(str, checkpoints), "--out", str(out)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["average.safetensors"]
    check_mean(out, checkpoints)
    model = tmp_path / "model"
    shutil.copytree(checkpoints[0], model)
    shutil.copyfile(out, model / "model.safetensors")
    capsys.readouterr()
    assert run_command(["translate", "--model", str(model), "--threads", "1", str(corpus.valid_src)]) == 0
    assert capsys.readouterr().out.count("\n") == 8


def check_mean(path: Path, checkpoints: list[Path]) -> None:
    """Summed in double precision, so the mean of single-precision weights is right to the last bit but one."""
    averaged = load_file(path)
    weights = [load_file(folder / "model.safetensors") for folder in checkpoints]
    assert averaged.keys() == weights[0].keys()
    for name, tensor in averaged.items():
        mean = np.mean([each[name].astype(np.float64) for each in weights], axis=0)
        np.testing.assert_allclose(tensor, mean, rtol=2**-23, atol=0)


def test_the_average_of_one_is_itself(checkpoints: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "same"
    assert run_command(["average", str(checkpoints[0]), "--out", str(out)]) == 0
    same, own = load_file(out / "model.safetensors"), load_file(checkpoints[0] / "model.safetensors")
    assert all((same[name] == own[name]).all() for name in own)
