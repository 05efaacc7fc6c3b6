"""Dragoman as a user runs it: `dragoman train` on plain text, and what the model that it leaves is worth."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT

THREADS = len(os.sched_getaffinity(0))  # a core each; `taskset` gives fewer
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "MKL_NUM_THREADS": str(THREADS)}
_COMMAND = [str(Path(sys.executable).with_name("dragoman"))]


@dataclass(frozen=True)
class Corpus:
    """A parallel text: the paths of its parts, to which `.<language>.gz` is added."""

    src: str
    tgt: str
    train: Path
    valid: Path
    test: Path

    def sides(self, part: Path) -> tuple[str, str]:
        """The files of both languages."""
        return f"{part}.{self.src}.gz", f"{part}.{self.tgt}.gz"


def measure(corpus: Corpus, folder: Path, flags: Sequence[str]) -> dict[str, Any]:
    """From the start of the command to its end, and the model that it leaves. Kept in the folder."""
    result = folder / "result.json"
    if not result.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.time()
        _train(corpus, folder, flags)
        point = {
            "seconds": time.time() - start,
            **_size(folder / "run"),
            "valid_bleu": _bleu(corpus, corpus.valid, folder),
            "test_bleu": _bleu(corpus, corpus.test, folder),
        }
        result.write_text(json.dumps(point, indent=1) + "\n")
        say(f"Dragoman {' '.join(flags)}: {point['seconds']:.0f} s, test BLEU {point['test_bleu']:.2f}")
    return json.loads(result.read_text())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _train(corpus: Corpus, folder: Path, flags: Sequence[str]) -> None:
    (src, tgt), (valid_src, valid_tgt) = corpus.sides(corpus.train), corpus.sides(corpus.valid)
    text = ["--src", src, "--tgt", tgt, "--valid-src", valid_src, "--valid-tgt", valid_tgt]
    log = folder / "train.log"
    with open(log, "w") as file:
        command = [*_COMMAND, "train", *text, "--out", str(folder / "run"), *flags]
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"dragoman train has failed; the reason is in {log.relative_to(ROOT)}")


def _size(run: Path) -> dict[str, int]:
    """How large the model is and how long it was trained: for a budget, what was chosen."""
    from dragoman.config import load_config

    config = load_config(run)
    model = config.model
    return {"updates": config.train.steps or 0, "d_model": model.d_model, "n_layers": model.n_encoder_layers}


def _bleu(corpus: Corpus, part: Path, folder: Path) -> float:
    src, ref = corpus.sides(part)
    command = [*_COMMAND, "evaluate", "--model", str(folder / "run"), "--src", src, "--ref", ref, "--json"]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["bleu"]["score"]
