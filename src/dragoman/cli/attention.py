"""`dragoman attention`: what a model looks at while it translates a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.output import check_writable, ending_of

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.explain.heads import Kind

_MOST_EFFECTS = 72  # heads of a model whose effects, one by one, are worth waiting for


@click.command("attention")
@click.argument("text")
@click.option("--model", metavar="RUN", required=True, help="Run folder or checkpoint.")
@click.option("--target", metavar="TEXT", help="Look at how this translation is produced, instead of the model's own.")
@click.option("--kind", type=click.Choice(["encoder", "decoder", "cross"]), help="Attention to show (first).")
@click.option("--layer", type=int, metavar="N", help="Layer to show (first), from 1.")
@click.option("--head", type=int, metavar="N", help="Head to show (first), from 1.")
@click.option(
    "--output",
    metavar="F",
    type=click.Path(path_type=Path),
    default=Path("attention.html"),
    show_default=True,
    help="A page, a picture or data, by its ending: .html, .png, .svg or .json.",
)
def command(text: str, model: str, target: str | None, output: Path, **view: Any) -> None:
    """Show what the model looks at while it translates TEXT: every layer and head.

    The page is one file that needs no network. Data is always of all heads; a picture is of all heads of one kind, or
    of one layer, or of one head.
    """
    ending = ending_of(output, ("html", "png", "svg", "json"))
    check_writable(output)
    from dragoman.checkpoint.folder import write_atomically, write_text
    from dragoman.explain.api import explain_json
    from dragoman.explain.heads import heads_of
    from dragoman.explain.page import page_html
    from dragoman.explain.picture import draw_attention
    from dragoman.translator import load

    translator = load(model, engine="torch")
    _check(view, translator.config)
    kind: Kind = view["kind"] or "cross"
    has_effects = ending == "html" and len(heads_of(translator.config.model)) <= _MOST_EFFECTS
    data = explain_json(translator, text, target, effects=has_effects)
    if ending == "json":
        write_text(output, json.dumps(data, ensure_ascii=False) + "\n")
    elif ending == "html":
        is_open = any(value is not None for value in view.values())
        first = {"kind": kind, "layer": view["layer"] or 1, "head": view["head"] or 1} if is_open else None
        write_text(output, page_html(data, name=Path(model).resolve().name, view=first))
    else:
        shown = {"kind": kind, "layer": view["layer"], "head": view["head"]}
        write_atomically(output, lambda part: draw_attention(data, part, ending, **shown))
    click.echo(f"{data['target']}\n{output}", err=True)


def _check(view: dict[str, Any], config: Config) -> None:
    """Raises if the model has no such layer or head."""
    from dragoman.errors import ConfigError

    model = config.model
    n_layers = model.n_encoder_layers if view["kind"] == "encoder" else model.n_decoder_layers
    for name, most in (("layer", n_layers), ("head", model.n_heads)):
        if view[name] is not None and not 1 <= view[name] <= most:
            raise ConfigError(f"--{name} {view[name]} is not in this model", hint=f"give 1 to {most}")
