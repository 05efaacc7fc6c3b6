"""The base package alone, in an environment of its own: no torch, and a model in use."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from small_run import ENVIRONMENT, Corpus

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_model_is_used_without_torch(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt", "."]
    subprocess.run([scripts / "python", *install], cwd=ROOT, check=True)

    def call(*args: object, code: int = 0) -> str:
        done = subprocess.run([*map(str, args)], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    installed = call(scripts / "python", "-m", "pip", "list", "--disable-pip-version-check")
    assert "ctranslate2" in installed
    assert "torch" not in installed
    model = ["--model", run]
    lines = call(scripts / "dragoman", "translate", *model, corpus.valid_src).splitlines()
    assert len(lines) == len(corpus.valid_src.read_text(encoding="utf-8").splitlines())
    assert any(lines)
    scores = call(scripts / "dragoman", "evaluate", *model, "--src", corpus.valid_src, "--ref", corpus.valid_tgt)
    assert "BLEU" in scores
    code = f"import dragoman; print(dragoman.load({str(run)!r})({lines[0]!r}))"
    assert call(scripts / "python", "-c", code).endswith("\n")
    assert "dragoman[train]" in call(scripts / "dragoman", "translate", *model, "--engine", "torch", code=1)
