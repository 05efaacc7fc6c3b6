"""`dragoman evaluate`: how good a model is on a text with references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command("evaluate")
@click.option("--model", metavar="RUN", required=True, help="Run folder or checkpoint.")
@click.option("--src", metavar="F", required=True, help="Text to translate.")
@click.option("--ref", metavar="F", required=True, help="Its reference translation.")
@click.option("--against", metavar="OTHER", help="Another model, or a file of translations, for a paired test.")
@click.option("--beam", type=int, metavar="N", help="Hypotheses kept at each step; 1 is greedy.")
@click.option("--length-penalty", type=float, metavar="A", help="Above 0 favours longer translations.")
@click.option("--engine", type=click.Choice(["auto", "torch", "ct2"]), default="auto", help="What translates.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str, src: str, ref: str, against: str | None, as_json: bool, **flags: Any) -> None:
    """Score a model with BLEU, chrF, TER, loss and perplexity."""
    from dragoman.errors import DataError
    from dragoman.score.likelihood import perplexity
    from dragoman.score.metrics import score
    from dragoman.score.significance import paired_bootstrap
    from dragoman.text.lines import read_aligned, read_lines
    from dragoman.translator import Translator, load

    sources, references = read_aligned(src, ref)
    where = {"device": flags["device"], "threads": flags["threads"], "engine": flags["engine"], "precision": "float32"}

    def translated(translator: Translator) -> list[str]:
        options = {"beam": flags["beam"], "length_penalty": flags["length_penalty"]}
        return [translation.text for translation in translator.translate(sources, **options)]

    translator = load(model, **where)
    theirs = None
    if against is not None:
        is_model = Path(against).is_dir()
        theirs = translated(load(against, **where)) if is_model else list(read_lines(against))
        if len(theirs) != len(references):
            raise DataError(
                f"{against} has {len(theirs)} lines but {ref} has {len(references)}",
                hint="give the other system's translation of every line",
            )
    ours = translated(translator)
    scores = score(ours, references)
    loss = translator.loss(sources, references)
    result: dict[str, Any] = {**scores.to_dict(), "loss": loss, "perplexity": perplexity(loss)}
    if theirs is not None:
        result["against"] = {"other": against, **paired_bootstrap(ours, theirs, references).to_dict()}
    click.echo(json.dumps(result) if as_json else _table(result))


def _table(result: dict[str, Any]) -> str:
    lines = []
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF"), ("ter", "TER")):
        lines.append(f"{label:<11}{result[name]['score']:8.2f}   {result[name]['signature']}")
    lines.append(f"{'loss':<11}{result['loss']:8.4f}   nats per target token")
    lines.append(f"{'perplexity':<11}{result['perplexity']:8.4f}   per target token")
    lines.append(f"{'sentences':<11}{result['sentences']:8d}")
    if "against" in result:
        against = result["against"]
        lines.append(f"\nagainst {against['other']}: paired bootstrap, 95 % interval of the difference")
        for name, label in (("bleu", "BLEU"), ("chrf", "chrF"), ("ter", "TER")):
            d = against[name]
            lines.append(
                f"{label:<11}{d['ours']:8.2f} − {d['theirs']:.2f} = {d['difference']:+.2f}"
                f"   [{d['low']:+.2f}, {d['high']:+.2f}]   p = {d['p_value']:.3f}"
            )
        lines.append(f"{'signature':<11}{against['bleu']['signature']}")
    return "\n".join(lines)
