"""`dragoman train`: raw text to a translator."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from dragoman.cli.training import gather, train_as_asked, training_options


@click.command("train")
@click.option("--src", metavar="F", help="Training text in the language to translate from, a sentence per line.")
@click.option("--tgt", metavar="F", help="The same sentences in the language to translate to.")
@click.option("--pairs", metavar="F", help="Both at once instead: a .tsv or .jsonl file. All files may be .gz.")
@click.option("--valid-src", metavar="F", help="Validation text, likewise.")
@click.option("--valid-tgt", metavar="F")
@click.option("--valid-pairs", metavar="F")
@click.option("--vocab-size", type=int, metavar="N", help="Subwords to learn.")
@click.option("--init", metavar="MODEL", help="A trained model to start from.")
@training_options
def command(
    out: Path, preset: str | None, config: Path | None, sets: tuple[str, ...], resume: bool, **flags: Any
) -> None:
    """Train a translator on parallel text."""
    began = time.monotonic()
    from dragoman.errors import ConfigError

    if preset is not None and flags["init"] is not None:
        raise ConfigError("--preset and --init both set the model's shape", hint="give one of them")
    settings, given = gather(out, preset, config, sets, resume, flags)
    train_as_asked("train", settings, given, out, resume=resume, began=began)
