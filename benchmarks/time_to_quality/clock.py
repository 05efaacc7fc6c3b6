"""The clock: a peer's training from plain text to its last checkpoint, and what its checkpoints are worth."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.environments import ROOT
from benchmarks.text import bleu, read_lines
from benchmarks.time_to_quality.text import FILES, TGT
from benchmarks.training import ENVIRONMENT, say

# The peers' own checkpoints are pickles, written a moment ago.
PEER_ENVIRONMENT = ENVIRONMENT | {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
_GRACE_S = 120  # to validate and save at the end, for a peer that stops itself


@dataclass(frozen=True)
class Checkpoint:
    path: str
    updates: int | None  # None if the name does not say
    written: float  # seconds since 1970

    @classmethod
    def of(cls, path: Path, updates: int | None) -> Checkpoint:
        return cls(str(path), updates, path.stat().st_mtime)


class Peer(Protocol):
    """Another system: what it does in the clock, and what its checkpoints are asked for afterwards."""

    name: str
    stops_itself: bool  # when its time is over; others are told to

    def prepare(self, data: Path, folder: Path) -> None: ...

    def train(self, folder: Path, seconds: float) -> list[str]: ...

    def checkpoints(self, folder: Path) -> list[Checkpoint]: ...

    def translate(self, folder: Path, checkpoint: Path, split: str) -> list[str]: ...


def measure(peer: Peer, data: Path, folder: Path, minutes: float) -> dict[str, Any]:
    """The result of a peer: kept in its folder, and each of the two halves of the work only done if it is not there."""
    trained, result = folder / "trained.json", folder / "result.json"
    if not trained.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(trained, _train(peer, data, folder, 60 * minutes))
    if not result.exists():
        _write(result, _score(peer, data, folder, json.loads(trained.read_text())))
    return json.loads(result.read_text())


def references(data: Path, split: str) -> list[str]:
    return read_lines(data / f"{FILES[split]}.{TGT}.gz")


def _train(peer: Peer, data: Path, folder: Path, seconds: float) -> dict[str, Any]:
    start = time.time()
    peer.prepare(data, folder)
    prepared_s = time.time() - start
    say(f"{peer.name}: prepared in {prepared_s:.0f} s; training")
    log = folder / "train.log"
    with open(log, "w") as file:
        command = peer.train(folder, seconds - prepared_s)
        output = {"stdout": file, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, cwd=ROOT, env=PEER_ENVIRONMENT, start_new_session=True, **output)
        try:
            left_s = start + seconds - time.time() + (_GRACE_S if peer.stops_itself else 0)
            was_stopped = not _ends(process, left_s)
            if was_stopped:
                process.terminate()
                _ends(process, _GRACE_S)
        finally:
            _kill(process)
    checkpoints = peer.checkpoints(folder)
    if not checkpoints or (process.returncode and not was_stopped):
        sys.exit(f"{peer.name} has failed; the reason is in {log.relative_to(ROOT)}")
    return {"start": start, "prepared_s": prepared_s, "checkpoints": [asdict(checkpoint) for checkpoint in checkpoints]}


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits that long at most."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Whatever is left of the session that the process leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _score(peer: Peer, data: Path, folder: Path, trained: dict[str, Any]) -> dict[str, Any]:
    """Outside the clock: every checkpoint on the validation text, and the best of them on the test text."""
    points = []
    for checkpoint in trained["checkpoints"]:
        translations = peer.translate(folder, Path(checkpoint["path"]), "valid")
        score = bleu(translations, references(data, "valid"))
        seconds = checkpoint["written"] - trained["start"]
        points.append({"seconds": seconds, "updates": checkpoint["updates"], "valid_bleu": score})
        say(f"{peer.name}: {seconds:.0f} s, validation BLEU {score:.2f}")
    best = max(range(len(points)), key=lambda i: points[i]["valid_bleu"])
    translations = peer.translate(folder, Path(trained["checkpoints"][best]["path"]), "test")
    points[best]["test_bleu"] = bleu(translations, references(data, "test"))
    say(f"{peer.name}: test BLEU {points[best]['test_bleu']:.2f}")
    return {"name": peer.name, "prepared_s": trained["prepared_s"], "points": points}


def _write(path: Path, content: dict[str, Any]) -> None:
    """All of it or nothing."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.rename(path)
