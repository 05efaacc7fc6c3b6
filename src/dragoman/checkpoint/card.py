"""The model card: README.md of a run folder, with the training curve as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoint.folder import write_atomically, write_text
from dragoman.checkpoint.metrics import Record

CARD = "README.md"
CURVE = "curve.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a stranger should know before using a model."""

    name: str
    data: Sequence[tuple[str, str]]
    model: Sequence[tuple[str, str]]
    training: Sequence[tuple[str, str]]
    scores: Sequence[tuple[str, str, str]]  # metric, score, signature


def write_card(run: Path, card: Card, records: Sequence[Record]) -> None:
    """Writes README.md and curve.png."""
    write_atomically(run / CURVE, lambda part: draw_curve(records, part))
    write_text(run / CARD, _markdown(card))


def draw_curve(records: Sequence[Record], path: Path) -> None:
    """Loss and BLEU against the step, as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    losses = figure.add_subplot()
    lines = []
    for key, label, color in (
        ("loss", "training loss (smoothed labels)", "#8899aa"),
        ("valid_loss", "validation loss", "#0b62a4"),
    ):
        points = [(r["step"], r[key]) for r in records if key in r]
        if points:
            lines += losses.plot(*zip(*points, strict=True), label=label, color=color)
    losses.set_xlabel("update")
    losses.set_ylabel("nats per target token")
    losses.set_ylim(bottom=0)
    points = [(r["step"], r["valid_bleu"]) for r in records if "valid_bleu" in r]
    if points:
        bleu = losses.twinx()
        lines += bleu.plot(*zip(*points, strict=True), label="validation BLEU (right)", color="#c2410c", linestyle="--")
        bleu.set_ylabel("BLEU")
        bleu.set_ylim(bottom=0)
    losses.legend(handles=lines, loc="center right", frameon=False)
    losses.grid(alpha=0.25)
    figure.savefig(path, format="png", dpi=110)


def _markdown(card: Card) -> str:
    parts = [f"# {card.name}\n\nA translation model trained with Dragoman.\n"]
    parts.append(f"```\necho 'a sentence' | dragoman translate --model {card.name}\n```\n")
    for title, rows in (("Data", card.data), ("Model", card.model), ("Training", card.training)):
        parts.append(f"## {title}\n\n{_table(('', ''), rows)}")
    if card.scores:
        parts.append(f"## Scores\n\n{_table(('metric', 'score', 'signature'), card.scores)}")
    parts.append(f"## Curve\n\n![loss and BLEU against the update]({CURVE})\n")
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """The text with nothing in it that would end the cell, or be taken for mark-up."""
    text = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\|<>*_`[]" else c for c in text)
