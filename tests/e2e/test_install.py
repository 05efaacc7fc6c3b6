"""The base package and the server, in an environment of their own: no torch, and a model in use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path

import pytest
from small_run import ENVIRONMENT, Corpus

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_model_is_used_without_torch(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt"]
    subprocess.run([scripts / "python", *install, "."], cwd=ROOT, check=True)

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
    assert "dragoman[serve]" in call(scripts / "dragoman", "serve", "--model", f"en-de={run}", code=1)

    subprocess.run([scripts / "python", *install, ".[serve]"], cwd=ROOT, check=True)
    assert "torch" not in call(scripts / "python", "-m", "pip", "list", "--disable-pip-version-check")
    serve = [scripts / "dragoman", "serve", "--model", f"en-de={run}", "--port", "0", "--files", tmp_path / "files"]
    with subprocess.Popen([*map(str, serve)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found is not None
        asked = json.dumps({"q": lines[0], "source": "en", "target": "de"}).encode()
        request = urllib.request.Request(found[0] + "/translate", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["translatedText"]
        server.terminate()
        server.stderr.read()
        assert server.wait() == 0
