"""`dragoman heads`: how much each head of a model matters on a text."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.duration import duration
from dragoman.cli.output import check_writable, ending_of

if TYPE_CHECKING:
    from dragoman.explain.heads import Head


@click.command("heads")
@click.option("--model", metavar="RUN", required=True, help="Run folder or checkpoint.")
@click.option("--src", metavar="F", required=True, help="Text to translate.")
@click.option("--tgt", metavar="F", required=True, help="Its reference translation.")
@click.option("--bleu", "with_bleu", is_flag=True, help="Translate without each head too: takes several times as long.")
@click.option("--output", metavar="F", type=click.Path(path_type=Path), help="Draw a heat map here: .png or .svg.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str, src: str, tgt: str, with_bleu: bool, output: Path | None, as_json: bool, **where: Any) -> None:
    """Switch off each head in turn, and say how much worse the model becomes.

    Layers and heads count from 1. What matters for one text may matter less for another, and two heads may stand in for
    each other: each change is that of one head alone.
    """
    from dragoman.checkpoint.folder import write_atomically
    from dragoman.explain.importance import importance
    from dragoman.explain.picture import draw_importance
    from dragoman.text.lines import read_aligned
    from dragoman.translator import load

    ending = None
    if output is not None:
        ending = ending_of(output, ("png", "svg"))
        check_writable(output)
    sources, references = read_aligned(src, tgt)
    translator = load(model, engine="torch", **where)
    whole, *found = importance(translator, sources, references, with_bleu=with_bleu, progress=_Told())
    heads = [one.head for one in found if one.head is not None]
    losses = [one.loss - whole.loss for one in found]
    bleus = None if whole.bleu is None else [(one.bleu or 0.0) - whole.bleu for one in found]
    if output is not None and ending is not None:
        title = "change of loss without each head (nats per target token)"
        write_atomically(output, lambda part: draw_importance(heads, losses, title, part, ending))
    if as_json:
        changes = [
            {"head": str(head), "loss": losses[i]} | ({} if bleus is None else {"bleu": bleus[i]})
            for i, head in enumerate(heads)
        ]
        click.echo(json.dumps({"loss": whole.loss, "bleu": whole.bleu, "sentences": len(sources), "changes": changes}))
        return
    click.echo(f"loss {whole.loss:.4f} nats per target token with all heads; change without each:\n")
    click.echo(_table(heads, losses, "+.4f"))
    if bleus is not None:
        click.echo(f"\nBLEU {whole.bleu:.2f} with all heads; change without each:\n")
        click.echo(_table(heads, bleus, "+.2f"))


class _Told:
    """Says on stderr how many heads are done: often at a terminal, else now and then."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, n_done: int, n_all: int) -> None:
        now, is_last = time.monotonic(), n_done == n_all
        if n_done and (is_last or now - self._said >= (0.2 if self._is_terminal else 10)):
            self._said = now
            left = "" if is_last else f", ETA {duration((now - self._began) / n_done * (n_all - n_done))}"
            end = "\x1b[K\r" if self._is_terminal and not is_last else "\n"
            print(f"{n_done} of {n_all} models scored{left}", file=sys.stderr, end=end, flush=True)


def _table(heads: list[Head], changes: list[float], form: str) -> str:
    """A row for each layer, a column for each head."""
    numbers = dict(zip(heads, changes, strict=True))
    columns = sorted({head.head for head in heads})
    lines = [" " * 10 + "".join(f"{f'head {column}':>10}" for column in columns)]
    for kind, layer in dict.fromkeys((head.kind, head.layer) for head in heads):
        row = [change for head, change in numbers.items() if (head.kind, head.layer) == (kind, layer)]
        lines.append(f"{f'{kind} {layer}':<10}" + "".join(f"{format(change, form):>10}" for change in row))
    return "\n".join(lines)
