"""Training as a person meets it: progress on the screen, and signals that save. For `train` and `demo`."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from dragoman.watch import Stop

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.run import Outcome


def train_in_sight(
    config: Config,
    out: Path,
    *,
    resume: bool,
    go_on: str,
    given: Collection[str] | None = None,
    began: float | None = None,
) -> Outcome:
    """Trains to the end. Stopped by a signal, it exits with 130 or 143 and names `go_on`, the command to resume."""
    from dragoman.checkpoint.folder import CONFIG
    from dragoman.cli.progress import watcher
    from dragoman.run import train
    from dragoman.train.workers import keep_freed_memory

    keep_freed_memory()
    with watcher() as screen, _stoppable() as stop:
        try:
            outcome = train(config, out, watcher=screen, given=given, began=began, resume=resume, stop=stop)
        except KeyboardInterrupt:
            screen.note(f"stopped; go on with: {go_on}" if (out / CONFIG).is_file() else "stopped")
            raise click.exceptions.Exit(128 + stop.signal) from None
        if not outcome.is_finished:
            screen.note(f"saved at step {outcome.step}; go on with: {go_on}")
            raise click.exceptions.Exit(128 + stop.signal)
        if outcome.scores is not None:
            screen.note(f"BLEU {outcome.scores.bleu.score:.2f}  {outcome.scores.bleu.signature}")
    return outcome


class _SignalStop(Stop):
    """A request to stop that came as a signal."""

    signal: int = signal.SIGINT


@contextmanager
def _stoppable() -> Iterator[_SignalStop]:
    """Ctrl-C and SIGTERM ask training to save and stop; a second one, or one at any other time, stops at once."""
    stop = _SignalStop()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        if not stop.is_heeded or stop.is_requested:
            raise KeyboardInterrupt
        stop.is_requested = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
