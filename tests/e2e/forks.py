"""Loads all of Dragoman once, then runs each command it reads on stdin in a fork. See small_run.py."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from typing import Any

import ctranslate2  # noqa: F401 (the end of a run loads this)
import numpy as np
import torch._dynamo  # making an optimizer loads this, and writing the diary the next
import torch.utils.tensorboard

import dragoman.checkpoint.card
import dragoman.cli.main
import dragoman.cli.progress
import dragoman.run
from dragoman.batches.batch import Batch
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.train.config import TrainConfig
from dragoman.train.gradient import add_gradient

# Half the time of a run as small as these would go into the picture of its curve.
dragoman.checkpoint.card.draw_curve = lambda records, path: path.write_bytes(b"a picture")

# What an audit hook is told just before a file or folder appears, changes its name or disappears.
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def _load_loops() -> None:
    """Of the training pass: each process would else load them from disk, with files that come and go."""
    model = Transformer(ModelConfig(vocab_size=9, d_model=8, d_ff=8, n_heads=1, n_encoder_layers=1, n_decoder_layers=1))
    words = torch.full((2, 3), 5)
    batch = Batch(words, words, words, 6, np.arange(2))
    for r_drop in (0.0, 1.0):
        add_gradient(model, batch, TrainConfig(r_drop=r_drop), pad_id=0, n_tokens=6, step=1, number=0)


def main() -> None:
    """Answers each job with the process that does it, each question about a process with its exit code."""
    assert torch.get_num_threads() == 1
    _load_loops()
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
        else:
            # The files must be there before anyone looks at them.
            for end in (".out", ".err"):
                open(job["base"] + end, "w").close()
            answer = os.fork()
            if answer == 0:
                _do(job)
        print(answer, flush=True)


def _do(job: dict[str, Any]) -> None:
    for number, path, mode in (
        (0, job["stdin"], "rb"),
        (1, job["base"] + ".out", "wb"),
        (2, job["base"] + ".err", "wb"),
    ):
        with open(path, mode) as file:
            os.dup2(file.fileno(), number)
    if job["kill_at"] is not None:
        sys.addaudithook(_Killer(job["folder"], job["kill_at"]))
    if job["signal_in"] is not None:
        _signal_in(*job["signal_in"])
    code: Any = 1
    try:
        dragoman.cli.main.main(job["args"])
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


class _Killer:
    """Counts changes inside a folder and kills this process just before one of them."""

    def __init__(self, folder: str, kill_at: int) -> None:
        self._folder, self._left = folder, kill_at

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        is_change = event in _CHANGES or (event == "open" and _writes(args))
        if not is_change or not self._is_inside(args[0]):
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_inside(self, path: Any) -> bool:
        if not isinstance(path, str | os.PathLike):
            return False
        return os.fspath(path).startswith(self._folder) and "tensorboard" not in os.fspath(path)


def _writes(args: tuple[Any, ...]) -> bool:
    """Whether this `open` is for writing; `os.open` says so by flags, `open` by a mode."""
    _, mode, flags = args
    return any(c in mode for c in "wax+") if mode else bool(flags & (os.O_WRONLY | os.O_RDWR))


def _signal_in(name: str, nth: int, number: int) -> None:
    """Makes the n-th call of a function send this process a signal first."""
    owner_name, _, attribute = name.rpartition(".")
    module, _, inner = owner_name.partition(":")
    owner = importlib.import_module(module)
    for part in filter(None, inner.split(".")):
        owner = getattr(owner, part)
    original, calls = getattr(owner, attribute), 0

    def signalled(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            os.kill(os.getpid(), number)
        return original(*args, **options)

    setattr(owner, attribute, signalled)


if __name__ == "__main__":
    main()
