"""`dragoman inspect`: what a model is."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

_BARS = "▁▂▃▄▅▆▇█"


@click.command("inspect")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: Path, as_json: bool) -> None:
    """Show what the model in RUN is: parameters, vocabulary, training curve, scores and settings."""
    from dragoman.checkpoint.folder import SUBWORDS, WEIGHTS, read_sizes
    from dragoman.checkpoint.metrics import read_records
    from dragoman.config import load_config
    from dragoman.model.parameters import parameters_by_part
    from dragoman.tokens.subwords import Subwords

    config = load_config(run)
    subwords = Subwords.load(run / SUBWORDS)
    parts = parameters_by_part(read_sizes(run / WEIGHTS))
    records = read_records(run)
    last = records[-1] if records else {}
    report: dict[str, Any] = {
        "run": str(run),
        "parameters": {"total": sum(parts.values()), **parts},
        "vocabulary": {
            "size": subwords.vocab_size,
            "first": subwords.pieces(range(260, min(270, subwords.vocab_size))),
        },
        "training": {
            "steps": last.get("step", 0),
            "elapsed_s": last.get("elapsed_s", 0),
            "weights": last.get("final", "training is not finished"),
            "loss": _curve(records, "loss"),
            "valid_loss": _curve(records, "valid_loss"),
            "valid_bleu": _curve(records, "valid_bleu"),
        },
        "scores": last.get("scores", {}),
        "config": asdict(config),
    }
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else _page(report))


def _curve(records: list[dict[str, Any]], key: str) -> list[tuple[int, float]]:
    return [(record["step"], record[key]) for record in records if key in record]


def _page(report: dict[str, Any]) -> str:
    lines = [f"{report['run']}", "", "parameters"]
    parameters = report["parameters"]
    for part, count in parameters.items():
        lines.append(f"  {part:<22}{count:>14,}  {100 * count / parameters['total']:5.1f} %")
    vocabulary = report["vocabulary"]
    lines += ["", f"vocabulary  {vocabulary['size']:,} subwords, such as {' '.join(vocabulary['first'])}"]
    training = report["training"]
    minutes = training["elapsed_s"] / 60
    lines += ["", f"training    {training['steps']:,} updates, {minutes:.1f} minutes; {training['weights']}"]
    for key, label in (("loss", "loss"), ("valid_loss", "validation loss"), ("valid_bleu", "validation BLEU")):
        if training[key]:
            values = [value for _, value in training[key]]
            lines.append(f"  {label:<16}{values[0]:8.3f} {sparkline(values)} {values[-1]:.3f}")
    if report["scores"]:
        lines += ["", "scores      beam search on the validation text"]
        for name in ("bleu", "chrf", "ter"):
            scored = report["scores"][name]
            lines.append(f"  {name:<6}{scored['score']:8.2f}  {scored['signature']}")
    lines += ["", "settings"]
    for section, values in report["config"].items():
        said = "  ".join(f"{key}={value}" for key, value in values.items() if value is not None)
        lines.append(f"  [{section}] {said}")
    return "\n".join(lines)


def sparkline(values: list[float], width: int = 40) -> str:
    """The course of some numbers as a row of bars, at most `width` of them."""
    if len(values) > width:
        values = [values[i * (len(values) - 1) // (width - 1)] for i in range(width)]
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)
