"""`dragoman distill`: a trained translator to a smaller, faster one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from dragoman.cli.training import gather, train_as_asked, training_options


@click.command("distill")
@click.option(
    "--teacher", "teachers", metavar="RUN", multiple=True, help="Model to learn from; several: averaged, slower."
)
@click.option("--src", metavar="F", help="Text for the teacher to translate, a sentence per line; may be .gz.")
@click.option("--tgt", metavar="F", help="Its true translation: trained on as well, each sentence then occurs twice.")
@click.option("--valid-src", metavar="F", help="Validation text, and its true translation.")
@click.option("--valid-tgt", metavar="F")
@click.option("--beam", "teacher_beam", type=int, metavar="N", help="Of the teacher; 1 is quickest.")
@training_options
def command(
    out: Path,
    preset: str | None,
    config: Path | None,
    sets: tuple[str, ...],
    resume: bool,
    teachers: tuple[str, ...],
    **flags: Any,
) -> None:
    """Train a faster translator, by default of the preset fast, on the translations of a better one.

    The teacher translates --src, and the student is trained on that, with the teacher's subwords. A --budget covers
    both. The translations stay in the run folder.
    """
    began = time.monotonic()
    from dragoman.errors import ConfigError

    lacking = ConfigError("there is no teacher", hint="give --teacher RUN, a trained model")
    if not (teachers or resume or config):
        raise lacking
    preset = preset or (None if resume else "fast")
    settings, given = gather(out, preset, config, sets, resume, {**flags, "teachers": teachers or None})
    if not settings.text.teachers:
        raise lacking
    train_as_asked("distill", settings, given, out, resume=resume, began=began)
