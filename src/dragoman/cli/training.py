"""Training as a person meets it: its flags, progress on the screen, and signals that save.

For `train`, `distill` and `demo`.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.cli.duration import seconds
from dragoman.watch import Stop

if TYPE_CHECKING:
    from dragoman.config import Config, Settings
    from dragoman.run import Outcome

# Flags that are settings under another name; the rest of the settings are reached by --set.
_FLAGS = {
    "src": "text", "tgt": "text", "pairs": "text", "valid_src": "text", "valid_tgt": "text", "valid_pairs": "text",
    "teachers": "text", "teacher_beam": "text", "vocab_size": "tokens", "budget_s": "train", "steps": "train",
    "epochs": "train", "seed": "train", "device": "train", "threads": "train", "init": "train",
}  # fmt: skip

_OPTIONS = (
    click.option("--out", metavar="RUN", type=click.Path(path_type=Path), required=True, help="Folder for the model."),
    click.option(
        "--preset",
        type=click.Choice(["tiny", "small", "fast", "base", "big"]),
        help="Model size; base is the paper's, fast has one layer that writes.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=seconds,
        metavar="TIME",
        help="Time for everything, such as 30m: the rest is chosen to fit.",
    ),
    click.option("--steps", type=int, metavar="N", help="Updates to make, instead of --budget."),
    click.option("--epochs", type=int, metavar="N", help="Passes over the text to make, instead of --steps."),
    click.option("--seed", type=int, metavar="N", help="The same seed gives the same run."),
    click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to train."),
    click.option("--threads", type=int, metavar="N", help="Processor threads to use."),
    click.option(
        "--config", metavar="FILE.toml", type=click.Path(path_type=Path), help="Settings; flags go over them."
    ),
    click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting, such as model.d_ff=1024."),
    click.option("--resume", is_flag=True, help="Go on with the run in --out."),
)

F = TypeVar("F", bound=Callable[..., Any])


def training_options(command: F) -> F:
    """The command with the flags that say how to train."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def gather(
    out: Path, preset: str | None, config: Path | None, sets: Collection[str], resume: bool, flags: Mapping[str, Any]
) -> tuple[Config, set[str]]:
    """The settings that the flags ask for, and the names of those that were given."""
    from dragoman.checkpoint.folder import CONFIG
    from dragoman.config import PRESETS, make_config, parse_setting, read_settings, shape_of
    from dragoman.errors import ConfigError

    lengths = [f"--{name.removesuffix('_s')}" for name in ("budget_s", "steps", "epochs") if flags[name] is not None]
    if len(lengths) > 1:
        raise ConfigError(f"{' and '.join(lengths)} both say how long to train", hint="give one of them")
    layers: list[Settings] = []
    if resume:
        if not (out / CONFIG).is_file():
            raise ConfigError(f"there is no run to resume in {out}", hint="leave --resume out to begin one")
        layers.append(read_settings(out / CONFIG))
    if preset is not None:
        layers.append(PRESETS[preset] if flags["budget_s"] is None else shape_of(preset))
    if config is not None:
        layers.append(read_settings(config))
    given: Settings = {section: {} for section in _FLAGS.values()}
    for name, value in flags.items():
        if value is not None:
            given[_FLAGS[name]][name] = value
    layers += [given, *(parse_setting(text) for text in sets)]
    settings = make_config(*layers)
    return settings, {f"{section}.{key}" for layer in layers for section, values in layer.items() for key in values}


def train_as_asked(
    command: str, config: Config, given: Collection[str], out: Path, *, resume: bool, began: float
) -> None:
    """Trains in sight, and says how to go on or what to do with the model."""
    name = shlex.quote(str(out))
    train_in_sight(
        config, out, given=given, began=began, resume=resume, go_on=f"dragoman {command} --resume --out {name}"
    )
    click.echo(f"done: {out}; translate with: dragoman translate --model {name} FILE", err=True)


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
