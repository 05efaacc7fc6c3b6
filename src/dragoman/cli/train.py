"""`dragoman train`: raw text to a translator."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import click

from dragoman.cli.duration import seconds
from dragoman.cli.training import train_in_sight

# Flags that are settings under another name; the rest of the settings are reached by --set.
_FLAGS = {
    "src": "text", "tgt": "text", "pairs": "text", "valid_src": "text", "valid_tgt": "text", "valid_pairs": "text",
    "vocab_size": "tokens", "budget_s": "train", "steps": "train", "epochs": "train", "seed": "train",
    "device": "train", "threads": "train", "init": "train",
}  # fmt: skip


@click.command("train")
@click.option("--src", metavar="F", help="Training text in the language to translate from, a sentence per line.")
@click.option("--tgt", metavar="F", help="The same sentences in the language to translate to.")
@click.option("--pairs", metavar="F", help="Both at once instead: a .tsv or .jsonl file. All files may be .gz.")
@click.option("--valid-src", metavar="F", help="Validation text, likewise.")
@click.option("--valid-tgt", metavar="F")
@click.option("--valid-pairs", metavar="F")
@click.option("--out", metavar="RUN", type=click.Path(path_type=Path), required=True, help="Folder for the model.")
@click.option("--preset", type=click.Choice(["tiny", "small", "base", "big"]), help="Model size; base is the paper's.")
@click.option(
    "--budget",
    "budget_s",
    type=seconds,
    metavar="TIME",
    help="Time for everything, such as 30m: the rest is chosen to fit.",
)
@click.option("--steps", type=int, metavar="N", help="Updates to make, instead of --budget.")
@click.option("--epochs", type=int, metavar="N", help="Passes over the text to make, instead of --steps.")
@click.option("--vocab-size", type=int, metavar="N", help="Subwords to learn.")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same run.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to train.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option("--init", metavar="MODEL", help="A trained model to start from.")
@click.option("--config", metavar="FILE.toml", type=click.Path(path_type=Path), help="Settings; flags go over them.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting, such as model.d_ff=1024.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
def command(
    out: Path, preset: str | None, config: Path | None, sets: tuple[str, ...], resume: bool, **flags: Any
) -> None:
    """Train a translator on parallel text."""
    began = time.monotonic()
    from dragoman.checkpoint.folder import CONFIG
    from dragoman.config import PRESETS, Settings, make_config, parse_setting, read_settings, shape_of
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
        if flags["init"] is not None:
            raise ConfigError("--preset and --init both set the model's shape", hint="give one of them")
        layers.append(PRESETS[preset] if flags["budget_s"] is None else shape_of(preset))
    if config is not None:
        layers.append(read_settings(config))
    given: Settings = {section: {} for section in _FLAGS.values()}
    for name, value in flags.items():
        if value is not None:
            given[_FLAGS[name]][name] = value
    layers += [given, *(parse_setting(text) for text in sets)]
    settings = make_config(*layers)

    name = shlex.quote(str(out))
    names = {f"{section}.{key}" for layer in layers for section, values in layer.items() for key in values}
    train_in_sight(
        settings, out, given=names, began=began, resume=resume, go_on=f"dragoman train --resume --out {name}"
    )
    click.echo(f"done: {out}; translate with: dragoman translate --model {name} FILE", err=True)
