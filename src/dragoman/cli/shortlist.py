"""`dragoman shortlist`: the subwords that translations are likely to need, from parallel text, for a trained model."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("shortlist")
@click.option("--model", metavar="RUN", type=click.Path(path_type=Path), required=True, help="Run folder.")
@click.option("--src", metavar="F", required=True, help="Text in the model's source language.")
@click.option("--tgt", metavar="F", required=True, help="Its translation, line for line.")
def command(model: Path, src: str, tgt: str) -> None:
    """Make a model's shortlist anew, for one that has none or that is used on another kind of text."""
    from dataclasses import replace

    from dragoman.checkpoint.folder import SHORTLIST
    from dragoman.cli.progress import watcher
    from dragoman.config import load_config
    from dragoman.prepare import make_shortlist

    config = load_config(model)
    config = replace(config, text=replace(config.text, src=src, tgt=tgt, pairs=None))
    with watcher() as screen:
        shortlist = make_shortlist(config, model, screen)
    n_common, n_others = len(shortlist.common), len(shortlist.candidates)
    click.echo(f"{model / SHORTLIST}: {n_common:,} subwords for any sentence, {n_others:,} translations", err=True)
