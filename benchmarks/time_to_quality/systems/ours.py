"""Dragoman as a user runs it: `dragoman train --budget`, a whole run for each budget."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.time_to_quality.clock import ENVIRONMENT, say
from benchmarks.time_to_quality.text import FILES, SRC, TGT


def measure(data: Path, folder: Path, flags: Sequence[str]) -> dict[str, Any]:
    """One point: from the start of the command to its end, and the model that it leaves. Kept in the folder."""
    result = folder / "result.json"
    if not result.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.time()
        _train(data, folder, flags)
        point = {
            "seconds": time.time() - start,
            **{f"{split}_bleu": _bleu(data, folder, split) for split in ("valid", "test")},
        }
        result.write_text(json.dumps(point, indent=1) + "\n")
        say(f"Dragoman {' '.join(flags)}: {point['seconds']:.0f} s, test BLEU {point['test_bleu']:.2f}")
    return json.loads(result.read_text())


def _train(data: Path, folder: Path, flags: Sequence[str]) -> None:
    train_src, train_tgt, valid_src, valid_tgt = (
        str(data / f"{FILES[split]}.{language}.gz") for split in ("train", "valid") for language in (SRC, TGT)
    )
    text = ["--src", train_src, "--tgt", train_tgt, "--valid-src", valid_src, "--valid-tgt", valid_tgt]
    log = folder / "train.log"
    with open(log, "w") as file:
        command = [*_COMMAND, "train", *text, "--out", str(folder / "run"), *flags]
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"dragoman train has failed; the reason is in {log.relative_to(ROOT)}")


def _bleu(data: Path, folder: Path, split: str) -> float:
    src, ref = (str(data / f"{FILES[split]}.{language}.gz") for language in (SRC, TGT))
    command = [*_COMMAND, "evaluate", "--model", str(folder / "run"), "--src", src, "--ref", ref, "--json"]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["bleu"]["score"]


_COMMAND = [str(Path(sys.executable).with_name("dragoman"))]
