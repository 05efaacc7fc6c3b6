"""A small language pair, a command line that trains on it in a second, and processes cheap enough to kill by the dozen.

Loading torch takes seconds, a small run takes less than one. So one process loads everything, and every command of
these tests runs in a fork of it: a process of its own, with its own signals and exit code, that starts at once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DRAGOMAN = [sys.executable, "-c", "from dragoman.cli.main import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "100"}
SHARED_STEPS = 204  # of the run that tests share: enough that every sentence gets a translation
_FORKS = Path(__file__).with_name("forks.py")

_SYLLABLES = ("ba", "de", "ki", "lo", "mu", "na", "po", "ri", "su", "ta")
_WORDS = [a + b for a in _SYLLABLES for b in _SYLLABLES[:4]]


@dataclass(frozen=True)
class Corpus:
    """Parallel files."""

    src: Path
    tgt: Path
    valid_src: Path
    valid_tgt: Path

    def flags(self) -> list[str]:
        """The flags of `train` that name these files."""
        return [
            "--src", str(self.src), "--tgt", str(self.tgt),
            "--valid-src", str(self.valid_src), "--valid-tgt", str(self.valid_tgt),
        ]  # fmt: skip


def write_corpus(folder: Path, n_pairs: int = 240, n_valid: int = 8) -> Corpus:
    """A language whose words are spelled backwards and upside down: word n becomes word 39 - n, in reversed order."""
    rng = random.Random(7)
    corpus = Corpus(*(folder / name for name in ("train.src", "train.tgt", "valid.src", "valid.tgt")))
    for src, tgt, n in ((corpus.src, corpus.tgt, n_pairs), (corpus.valid_src, corpus.valid_tgt, n_valid)):
        sentences = [[rng.randrange(len(_WORDS)) for _ in range(rng.randint(2, 5))] for _ in range(n)]
        src.write_text("".join(" ".join(_WORDS[i] for i in s) + "\n" for s in sentences), encoding="utf-8")
        tgt.write_text("".join(" ".join(_WORDS[-1 - i] for i in s[::-1]) + "\n" for s in sentences), encoding="utf-8")
    return corpus


def small(steps: int, *settings: str) -> list[str]:
    """Flags of a model of a few thousand parameters; `settings` go over them."""
    own = [
        "model.d_model=32", "model.d_ff=64", "model.n_heads=2", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
        "batches.tokens=300", "batches.max_len_tokens=64", "train.warmup_steps=20", "train.log_every=4",
        "train.valid_every=12", "train.save_every=6", "train.keep=3", "train.average=2", "search.max_extra_tokens=6",
    ]  # fmt: skip
    sets = [word for setting in (*own, *settings) for word in ("--set", setting)]
    return ["--steps", str(steps), "--vocab-size", "300", "--threads", "1", "--device", "cpu", *sets]


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int  # below 0: the signal that killed it
    out: str
    err: str


class Forks:
    """The process that has everything loaded, and the commands forked from it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._n = folder, 0
        self._server = subprocess.Popen(
            [sys.executable, str(_FORKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True
        )

    def start(
        self,
        args: Sequence[str],
        *,
        kill_at: int | None = None,
        folder: Path | None = None,
        stdin: Path | None = None,
        signal_in: tuple[str, int, int] | None = None,
    ) -> Command:
        """A running command.

        `kill_at` n kills it, as if the power failed, just before the n-th change it makes to files in `folder`;
        `signal_in` (function, n, signal) sends it the signal when it calls the function for the n-th time.
        """
        self._n += 1
        base = self._folder / f"command-{self._n}"
        job = {"args": list(args), "base": str(base), "kill_at": kill_at, "signal_in": signal_in}
        job |= {"folder": None if folder is None else str(folder), "stdin": str(stdin or os.devnull)}
        return Command(self, int(self._ask(job)), base)

    def run(self, args: Sequence[str], **options: Any) -> Ended:
        """A command, run to its end."""
        return self.start(args, **options).wait()

    def wait(self, pid: int) -> int:
        return int(self._ask({"wait": pid}))

    def close(self) -> None:
        if self._server.poll() is None:
            self._server.communicate()

    def _ask(self, message: dict[str, Any]) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()
        return self._server.stdout.readline()


class Command:
    """A command that runs."""

    def __init__(self, forks: Forks, pid: int, base: Path) -> None:
        self.pid, self._forks, self._base = pid, forks, base

    def wait(self) -> Ended:
        code = self._forks.wait(self.pid)
        out, err = (self._base.with_suffix(end).read_text(encoding="utf-8") for end in (".out", ".err"))
        return Ended(code, out, err)


@cache
def shared(base: Path) -> tuple[Forks, Corpus, Path]:
    """The forks, the corpus and a trained run, made once per session, whoever asks first."""
    folder = base / "shared"
    folder.mkdir()
    forks, corpus = Forks(folder), write_corpus(folder)
    learns = small(SHARED_STEPS, "train.schedule=linear", "train.lr=0.01")
    ended = forks.run(["train", *corpus.flags(), "--out", str(folder / "run"), *learns])
    assert ended.code == 0, ended.err
    return forks, corpus, folder / "run"
