"""`dragoman average`: one model out of several checkpoints."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("average")
@click.argument("checkpoints", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="F", type=click.Path(path_type=Path), required=True, help="Folder, or .safetensors file."
)
def command(checkpoints: tuple[Path, ...], out: Path) -> None:
    """Average the weights of CHECKPOINTS, as the paper did, into a model folder or a single weights file."""
    from dragoman.checkpoint.average import average_weights
    from dragoman.checkpoint.format import save_model, save_tensors
    from dragoman.errors import ConfigError

    if out.exists():
        raise ConfigError(f"{out} is there already", hint="choose another --out")
    weights = average_weights(checkpoints)
    if out.suffix == ".safetensors":
        out.parent.mkdir(parents=True, exist_ok=True)
        save_tensors(out, weights)
    else:
        save_model(out, weights, like=checkpoints[0])
    click.echo(f"average of {len(checkpoints)} checkpoints: {out}", err=True)
