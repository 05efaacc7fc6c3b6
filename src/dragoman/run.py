"""Composer for training: from text files to a run folder that holds a translator."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

from dragoman.batches.sampler import epoch_batches
from dragoman.budget import Choice, choose_training, choose_vocabulary
from dragoman.checkpoint import folder as files
from dragoman.checkpoint.metrics import read_records
from dragoman.config import Config, changed_settings, load_config, to_toml
from dragoman.distill import distill
from dragoman.ending import finish
from dragoman.engines.torch_engine import pick_device
from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.prepare import DISTILLED, Data, count_chars, prepare, subwords_from
from dragoman.score.metrics import Scores
from dragoman.session import Session
from dragoman.train.config import PAPER_STEPS
from dragoman.watch import Stop, Watcher


@dataclass(frozen=True, slots=True)
class Outcome:
    """How training ended."""

    run: Path
    step: int
    is_finished: bool  # False: stopped on request, to be resumed
    elapsed_s: float  # over all sessions of the run
    scores: Scores | None = None  # of the final model, by beam search on the validation text


def train(
    config: Config,
    out: str | Path,
    *,
    watcher: Watcher,
    given: Collection[str] | None = None,
    resume: bool = False,
    stop: Stop | None = None,
    clock: Callable[[], float] = time.monotonic,
    began: float | None = None,
) -> Outcome:
    """Trains a translator into the folder `out`, or goes on with the one begun there.

    Under a budget, settings other than those `given` (by default: those that differ from the defaults) are chosen,
    and the time runs from `began`, by the clock.
    """
    run = Path(out)
    began = clock() if began is None else began
    given = changed_settings(Config(), config) if given is None else given
    device = pick_device(config.train.device)
    if config.train.compile and device.type == "cpu":
        raise ConfigError(
            "train.compile=true is for a GPU", hint="leave it out: on a processor loops are compiled anyway"
        )
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    if resume:
        config = _as_planned(config, run)
        changed = _check_resumable(config, run)
        records = read_records(run)
        if records and "final" in records[-1] and (config.train.budget_s is not None or not changed):
            watcher.note(f"{run} is finished: {records[-1]['step']} steps; give more --steps to go on")
            return Outcome(run, records[-1]["step"], True, records[-1]["elapsed_s"])
    else:
        config = _begin(config, run, given)
    try:
        if config.text.teachers:
            began -= distill(config, run, watcher, clock)
        if config.train.budget_s is not None and config.train.steps is None:
            data, config = _plan(config, given, run, device, watcher, lambda: clock() - began)
        else:
            data, config = prepare(config, run, watcher)
            config = replace(config, train=replace(config.train, steps=_total_steps(config, data), epochs=None))
        files.write_text(run / files.CONFIG, to_toml(config))
        training = Session(config, run, data, device, watcher, clock, began)
    except DragomanError:
        # Nothing was trained: a mistake in what was given leaves no half-made run behind. But teachers' work is kept.
        if not resume and not (run / DISTILLED).exists():
            shutil.rmtree(run)
        raise
    is_finished = training.run(stop or Stop())
    scores = finish(training) if is_finished else None
    training.log.close()
    return Outcome(run, training.state.step, is_finished, training.meter.elapsed(), scores)


def _plan(
    config: Config,
    given: Collection[str],
    run: Path,
    device: torch.device,
    watcher: Watcher,
    elapsed: Callable[[], float],
) -> tuple[Data, Config]:
    """The data and the config with everything chosen that the budget leaves open; tells the watcher what and why."""
    budget_s = config.train.budget_s
    assert budget_s is not None
    choices: list[Choice] = []
    if subwords_from(config) is None:
        config, choices = choose_vocabulary(config, given, count_chars(config, run))
    if config.train.init is not None:
        given = {*given, *(f"model.{field.name}" for field in fields(config.model))} - {"model.dropout"}
    data, config = prepare(config, run, watcher)
    config, more = choose_training(
        config, given, data.pairs, device=device, left_s=budget_s - elapsed(), n_valid=len(data.valid)
    )
    if elapsed() > budget_s / 2:
        raise ConfigError(
            f"what comes before training took {elapsed():.0f} s of the {budget_s:.0f} s", hint="give more time"
        )
    watcher.plan(budget_s, [(choice.setting, choice.value, choice.reason) for choice in (*choices, *more)])
    return data, config


def _begin(config: Config, run: Path, given: Collection[str]) -> Config:
    """Makes the run folder with its settings in it, so that a kill at any instant leaves something to resume."""
    if run.exists() and not run.is_dir():
        raise ConfigError(f"{run} is a file", hint="give --out a folder")
    unfinished = f".{files.CONFIG}.part"  # all there is of a run that was killed in its first moment
    if run.is_dir() and any(path.name != unfinished for path in run.iterdir()):
        raise ConfigError(f"{run} is not empty", hint="give --resume to go on with the run there, or another --out")
    if config.text.src is None and config.text.pairs is None:
        raise ConfigError("there is no training text", hint="give --src and --tgt, or --pairs")
    if config.train.init is not None:
        shape = load_config(Path(config.train.init)).model
        config = replace(config, model=replace(shape, dropout=config.model.dropout))
    run.mkdir(parents=True, exist_ok=True)
    # Under a budget the rest is chosen later; what was given has to be known then, also after a kill.
    files.write_text(run / files.CONFIG, to_toml(config, only=given if config.train.budget_s is not None else None))
    return config


def _as_planned(config: Config, run: Path) -> Config:
    """The config with the steps that were planned for its budget before, if they were."""
    if config.train.budget_s is None or config.train.steps is not None or not (run / files.CONFIG).is_file():
        return config
    return replace(config, train=replace(config.train, steps=load_config(run).train.steps))


def _check_resumable(config: Config, run: Path) -> list[str]:
    """The settings that were changed since; raises if the run cannot go on with them."""
    if not (run / files.CONFIG).is_file():
        raise ModelError(f"there is no run to resume in {run}", hint="leave --resume out to begin one")
    # The vocabulary decides these two, whatever a preset says of them.
    derived = ("model.vocab_size", "model.pad_id")
    changed = [name for name in changed_settings(load_config(run), config) if name not in derived]
    for name in changed:
        if not name.startswith(("train.", "search.")) or name in ("train.seed", "train.init"):
            raise ConfigError(f"{name} cannot change in a run that goes on", hint="begin a new run for that")
    files.remove_leftovers(run)
    return changed


def _total_steps(config: Config, data: Data) -> int:
    """Updates to make: as many as were asked for, or as the first epoch would take, times the epochs."""
    if config.train.epochs is None:
        return config.train.steps or PAPER_STEPS
    n_batches = sum(1 for _ in epoch_batches(data.pairs, config.batches, seed=config.train.seed, epoch=0))
    return max(1, config.train.epochs * n_batches // config.train.accumulate)
