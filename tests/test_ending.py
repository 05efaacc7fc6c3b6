"""What a run finds out at its end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from small_run import Corpus, Forks, small

from dragoman.config import load_config
from dragoman.translator import load


def goes_on(forks: Forks, corpus: Corpus, model: Path, out: Path) -> str:
    """What training says that starts from a model and hardly changes it."""
    ended = forks.run(["train", "--init", str(model), *corpus.flags(), "--out", str(out), *small(1, "train.lr=1e-9")])
    assert ended.code == 0, ended.err
    return ended.err


def last_record(folder: Path) -> dict[str, float]:
    record: dict[str, float] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return record


def test_a_model_that_loses_by_bytes_is_used_in_float32(
    forks: Forks, corpus: Corpus, run: Path, tmp_path: Path
) -> None:
    """A unit ten thousand times as loud, and heard as much less: nothing changes, but the others' bytes become zero."""
    shutil.copytree(run, tmp_path / "loud", ignore=shutil.ignore_patterns("ct2", "checkpoints"))
    path = tmp_path / "loud" / "model.safetensors"
    weights = load_file(path)
    for name, value in weights.items():
        if "feed_forward.inner" in name:  # weights and biases
            value[0] *= 1e4
        elif name.endswith("feed_forward.outer.weight"):
            value[:, 0] /= 1e4
    save_file(weights, path, {"format": "dragoman", "version": "1"})

    said = goes_on(forks, corpus, run, tmp_path / "plain")
    assert "float32 becomes" not in said
    assert load_config(tmp_path / "plain").search.int8
    assert abs(last_record(tmp_path / "plain")["int8_costs"]) < 0.01
    assert "int8 unless asked otherwise" in (tmp_path / "plain" / "README.md").read_text()

    said = goes_on(forks, corpus, tmp_path / "loud", tmp_path / "out")
    record = last_record(tmp_path / "out")
    assert record["loss_of_final"] == pytest.approx(last_record(tmp_path / "plain")["loss_of_final"], abs=1e-3)
    assert record["int8_costs"] > 0.01
    assert f"int8 raises the loss by {record['int8_costs']:.3f}: float32 becomes this model's default" in said
    assert not load_config(tmp_path / "out").search.int8
    assert "float32 unless asked otherwise" in (tmp_path / "out" / "README.md").read_text()

    lines = corpus.src.read_text(encoding="utf-8").splitlines()[:40]
    chosen, exact, brief = (
        [one.score for one in load(tmp_path / "out", precision=precision).translate(lines)]
        for precision in ("auto", "float32", "int8")
    )
    assert chosen == exact != brief
