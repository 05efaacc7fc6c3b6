"""Speeds as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Run = dict[str, Any]


def draw_bars(
    runs: list[Run],
    names: Mapping[str, str],
    path: Path,
    *,
    ratio: Callable[[Run, str], float],
    group: Callable[[Run], str],
    label: str,
) -> None:
    """Bars of each system's `ratio`, 0 where it has none: a panel per number of threads, a group of bars per run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = sorted({run["threads"] for run in runs})
    width = 0.8 / len(names)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6.5 * len(panels), 4.5), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, threads in zip(axes[0], panels, strict=True):
        groups = [run for run in runs if run["threads"] == threads]
        for i, (system, name) in enumerate(names.items()):
            xs = [g + (i - (len(names) - 1) / 2) * width for g in range(len(groups))]
            axis.bar(xs, [ratio(run, system) for run in groups], width, label=name.strip("*"))
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.set_xticks(range(len(groups)), [group(run) for run in groups])
        axis.set_title(f"{threads} thread{'s' * (threads > 1)}")
    axes[0][0].set_ylabel(label)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(panels), fontsize="small"
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)
