"""Attention as pictures in files, and the importance of heads as a heat map: matplotlib, PNG or SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.explain.heads import KINDS, Head, Kind

NAMES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}
_MAPS = {"encoder": "Greens", "decoder": "Purples", "cross": "Oranges"}
_SIDES: dict[Kind, tuple[str, str]] = {
    "encoder": ("src_tokens", "src_tokens"),
    "decoder": ("tgt_tokens", "tgt_in_tokens"),
    "cross": ("tgt_tokens", "src_tokens"),
}


def draw_attention(
    data: Mapping[str, Any], path: Path, file_format: str, *, kind: Kind, layer: int | None, head: int | None
) -> None:
    """The heads of a kind as matrices, all of them or those of a layer, or one head large; rows look at columns.

    `data` is as `explain_json` makes it; layer and head count from 1.
    """
    layers = range(1, len(data["attention"][kind]) + 1) if layer is None else [layer]
    heads = range(1, data["model"]["n_heads"] + 1) if head is None else [head]
    rows, columns = ([_label(token) for token in data[side]] for side in _SIDES[kind])
    is_one = len(layers) == len(heads) == 1
    cell = 0.32 if is_one else 0.17  # inches
    width, height = len(columns) * cell + 1.2, len(rows) * cell + 1.2
    figure = _figure(len(heads) * width + 0.3, len(layers) * height + 0.7)
    figure.suptitle(f"{data['source']}  →  {data['target']}", fontsize=11, wrap=True, parse_math=False)
    for place, (one_layer, one_head) in enumerate(((one, each) for one in layers for each in heads), 1):
        axes = figure.add_subplot(len(layers), len(heads), place)
        weights = np.array(data["attention"][kind][one_layer - 1][one_head - 1])
        axes.imshow(weights, cmap=_MAPS[kind], vmin=0, vmax=1, aspect="equal")
        size = 10 if is_one else 6
        axes.set_xticks(range(len(columns)), columns, rotation=60, ha="left", rotation_mode="anchor", fontsize=size)
        axes.set_yticks(range(len(rows)), rows, fontsize=size)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        title = f"layer {one_layer}, head {one_head}"
        axes.set_xlabel(f"{NAMES[kind]}, {title}" if is_one else title, fontsize=10 if is_one else 8)
        if is_one:
            _write_numbers(axes, 100 * weights, "{:.0f}", least=5, dark=55)
    figure.savefig(path, format=file_format, dpi=150 if is_one else 130)


def draw_importance(heads: Sequence[Head], changes: Sequence[float], title: str, path: Path, file_format: str) -> None:
    """A number for each head, a row for each layer: the redder, the worse without it."""
    numbers = dict(zip(heads, changes, strict=True))
    n_heads = max(head.head for head in heads)
    rows = [(kind, layer) for kind in KINDS for layer in sorted({head.layer for head in heads if head.kind == kind})]
    table = np.array([[numbers[Head(kind, layer, head)] for head in range(1, n_heads + 1)] for kind, layer in rows])
    most = max(1e-9, float(np.abs(table).max()))
    figure = _figure(2.4 + 0.75 * n_heads, 1.1 + 0.42 * len(rows))
    axes = figure.add_subplot()
    image = axes.imshow(table, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    axes.set_xticks(range(n_heads), [f"head {head}" for head in range(1, n_heads + 1)], fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{kind} {layer}" for kind, layer in rows], fontsize=9)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=10)
    _write_numbers(axes, table, "{:+.3f}", least=0, dark=0.6 * most)
    figure.colorbar(image, ax=axes)
    figure.savefig(path, format=file_format, dpi=150)


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(3.5, width), max(2.5, height)), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _write_numbers(axes: Any, table: np.ndarray, form: str, *, least: float, dark: float) -> None:
    for (row, column), number in np.ndenumerate(table):
        if abs(number) >= least:
            color = "white" if abs(number) > dark else "black"
            axes.text(column, row, form.format(number), ha="center", va="center", fontsize=8, color=color)


def _label(token: str) -> str:
    """A token as the page labels it: what goes on with a word has a dot in front."""
    if token in ("<s>", "</s>"):
        return token
    # A dollar would begin a formula.
    text = token.removeprefix("▁").replace("▁", " ") if token.startswith("▁") else f"·{token}"
    return (text or "␣").replace("$", r"\$")
