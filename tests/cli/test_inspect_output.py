"""`dragoman inspect`: what a model is, for people and for machines."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from small_run import SHARED_STEPS

from dragoman.cli.inspect import sparkline
from dragoman.cli.main import run as run_command
from dragoman.config import load_config


def test_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["inspect", str(run), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    report = json.loads(out)
    assert list(report) == ["run", "parameters", "vocabulary", "training", "scores", "config"]
    total = sum(tensor.size for tensor in load_file(run / "model.safetensors").values())
    assert report["parameters"].pop("total") == total == sum(report["parameters"].values())
    assert report["vocabulary"]["size"] == 300
    assert report["training"]["steps"] == SHARED_STEPS
    assert [step for step, _ in report["training"]["valid_loss"]] == list(range(12, SHARED_STEPS + 1, 12))
    assert [step for step, _ in report["training"]["loss"]] == list(range(4, SHARED_STEPS + 1, 4))
    assert report["scores"].keys() == {"bleu", "chrf", "ter", "sentences"}
    assert report["config"] == asdict(load_config(run))


def test_page(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["inspect", str(run)]) == 0
    page = capsys.readouterr().out
    for words in (
        str(run), "parameters", "embeddings", "encoder attention", "decoder feed-forward", "100.0 %",
        "vocabulary  300 subwords", f"training    {SHARED_STEPS} updates", "validation loss", "bleu", "nrefs:1",
        "[model] vocab_size=300",
    ):  # fmt: skip
        assert words in page


def test_a_checkpoint_is_a_model_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = run / "checkpoints" / f"step-{SHARED_STEPS:08}"
    assert run_command(["inspect", str(checkpoint)]) == 0
    assert "training is not finished" in capsys.readouterr().out


def test_sparkline() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5.0, 5.0]) == "▁▁"
    long = sparkline([float(i) for i in range(1000)])
    assert len(long) == 40
    assert (long[0], long[-1]) == ("▁", "█")
