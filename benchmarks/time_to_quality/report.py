"""What the runs say: how long ours takes to be as good as a peer, a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def table(results: dict[str, Any]) -> str:
    """Markdown: each run of ours, and for each peer the first of them that is as good on the test text."""
    lines = ["| | minutes | updates | BLEU validation | BLEU test |", "| --- | ---: | ---: | ---: | ---: |"]
    for point in results["ours"]:
        lines.append(_row(f"**Dragoman**, `--budget {point['budget']}`", point))
    for peer in results["peers"].values():
        lines.append(_row(f"{peer['name']}, its best checkpoint", _best(peer)))
    lines += [
        "",
        f"Each peer was stopped after {results['minutes']:g} minutes.",
        "",
        "| peer | its BLEU test | Dragoman first as good | Dragoman's minutes | how many times faster |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for peer in results["peers"].values():
        lines.append(_comparison(peer, results["ours"], results["minutes"]))
    return "\n".join(lines) + "\n"


def _best(peer: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint that was chosen on the validation text, which alone has a score on the test text."""
    return next(point for point in peer["points"] if "test_bleu" in point)


def _row(name: str, point: dict[str, Any]) -> str:
    updates = point.get("updates") or ""
    scores = f"{point['valid_bleu']:.2f} | {point['test_bleu']:.2f}"
    return f"| {name} | {point['seconds'] / 60:.1f} | {updates} | {scores} |"


def _comparison(peer: dict[str, Any], ours: list[dict[str, Any]], minutes: float) -> str:
    best = _best(peer)
    start = f"| {peer['name']}, {minutes:g} min | {best['test_bleu']:.2f} | "
    reached = next((point for point in ours if point["test_bleu"] >= best["test_bleu"]), None)
    if reached is None:
        return start + "not yet | | |"
    # The peer's time is that of the checkpoint that was scored, not of the end: it may have been best before.
    ratio = f"{best['seconds'] / reached['seconds']:.1f}"
    return start + f"`--budget {reached['budget']}` | {reached['seconds'] / 60:.1f} | {ratio} |"


def draw(results: dict[str, Any], path: Path) -> None:
    """BLEU over minutes: validation as lines, test as stars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    curves = [("Dragoman (a whole run for each point)", results["ours"])]
    curves += [(f"{peer['name']} (one run, its checkpoints)", peer["points"]) for peer in results["peers"].values()]
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, points in curves:
        minutes = [point["seconds"] / 60 for point in points]
        (line,) = axis.plot(minutes, [point["valid_bleu"] for point in points], marker="o", markersize=4, label=name)
        tested = [point for point in points if "test_bleu" in point]
        xs, ys = [point["seconds"] / 60 for point in tested], [point["test_bleu"] for point in tested]
        axis.plot(xs, ys, "*", markersize=11, markerfacecolor="none", color=line.get_color())
    axis.plot([], [], "*", markersize=11, markerfacecolor="none", color="grey", label="on test_2016_flickr")
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    cores = f"{results['threads']} core{'s' * (results['threads'] > 1)}"
    axis.set_xlabel(f"minutes of wall clock, {cores}, from plain text")
    axis.set_ylabel("BLEU, Multi30k English-German, validation")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)
