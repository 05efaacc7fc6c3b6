"""What the rounds say: medians, ratios, a table and a picture."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bars import draw_bars
from benchmarks.machine import vectors

YARDSTICK = "huggingface"
OURS = ("ours", "ours-bf16")
NAMES = {
    "ours": "**Dragoman**",
    "ours-bf16": "**Dragoman, bfloat16**",
    "huggingface": "Hugging Face Marian",
    "pytorch": "torch.nn.Transformer",
    "fairseq": "fairseq",
    "opennmt": "OpenNMT-py",
    "sockeye": "Sockeye",
    "joeynmt": "JoeyNMT",
}
_BUSY = 0.95  # share of the wall clock below which a thread evidently had to wait for others


def summarize(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Per peer: medians over the rounds. Ratios are taken within a round, where both did the same batches."""
    rounds = run["rounds"]
    summary = {}
    for peer, about in run["about"].items():
        reports = [r["peers"][peer] for r in rounds]
        speeds = [report["tgt_tokens"] / report["wall_s"] for report in reports]
        summary[peer] = {
            "version": about["version"],
            "parameters": about["parameters"],
            "tokens_per_s": median(speeds),
            "tokens_per_s_min": min(speeds),
            "tokens_per_s_max": max(speeds),
            "tokens_per_cpu_s": median(report["tgt_tokens"] / report["cpu_s"] for report in reports),
            "gemm_share": median(r["flops"] / r["peers"][peer]["wall_s"] / r["gemm_flops"] for r in rounds),
            "peak_rss_mb": max(report["peak_rss_mb"] for report in reports),
            "is_disturbed": min(report["cpu_s"] / report["wall_s"] for report in reports) < _BUSY,
        }
        if YARDSTICK in run["about"]:
            summary[peer]["ratio"] = median(_ratio(r, peer, YARDSTICK, "wall_s") for r in rounds)
            summary[peer]["cpu_ratio"] = median(_ratio(r, peer, YARDSTICK, "cpu_s") for r in rounds)
    others = [peer for peer in summary if peer not in OURS]
    for ours in (peer for peer in OURS if peer in summary and others):
        best = max(others, key=lambda peer: _rank(summary[peer]))
        summary[ours]["best_peer"] = best
        summary[ours]["ratio_to_best_peer"] = median(_ratio(r, ours, best, "wall_s") for r in rounds)
        summary[ours]["cpu_ratio_to_best_peer"] = median(_ratio(r, ours, best, "cpu_s") for r in rounds)
    return summary


def _rank(peer_summary: dict[str, Any]) -> float:
    """By ratio where there is one: unlike speeds, ratios within a round survive a machine that changes its own."""
    return peer_summary.get("ratio", peer_summary["tokens_per_s"])


def _ratio(one_round: dict[str, Any], peer: str, other: str, clock: str) -> float:
    """How many times as fast as the other."""
    return one_round["peers"][other][clock] / one_round["peers"][peer][clock]


def table(run: dict[str, Any]) -> str:
    """Markdown."""
    summary = run["summary"]
    lines = [
        f"### {run['size']}, {run['threads']} thread{'s' * (run['threads'] > 1)}",
        "",
        f"{len(run['rounds'])} rounds of {run['updates']} updates; GEMM peak {_peak(run) / 1e9:.0f} GFLOP/s "
        f"(median){vectors(run)}.",
        "",
        "| | parameters | target tokens/s (min to max) | ÷ Hugging Face | by CPU time | of GEMM peak | peak memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for peer in sorted(summary, key=lambda peer: -_rank(summary[peer])):
        s = summary[peer]
        speed = f"{s['tokens_per_s']:,.0f} ({s['tokens_per_s_min']:,.0f} to {s['tokens_per_s_max']:,.0f})"
        ratios = f"{s['ratio']:.2f} | {s['cpu_ratio']:.2f}" if "ratio" in s else " | "
        lines.append(
            f"| {NAMES[peer]} {s['version']} | {s['parameters']:,} | {speed} | {ratios} "
            f"| {s['gemm_share']:.0%} | {s['peak_rss_mb']:,.0f} MB |"
        )
    for peer in OURS:
        ours = summary.get(peer, {})
        if "best_peer" in ours:
            ratios = f"{ours['ratio_to_best_peer']:.2f}, by CPU time {ours['cpu_ratio_to_best_peer']:.2f}"
            lines += ["", f"{NAMES[peer].strip('*')} / best peer ({NAMES[ours['best_peer']]}): {ratios}"]
    if any(s["is_disturbed"] for s in summary.values()):
        lines += ["", "The machine was busy with other work: a peer did not get a whole core all the time."]
    return "\n".join(lines) + "\n"


def scaling(runs: list[dict[str, Any]]) -> str:
    """What further threads give, as Markdown; runs of one thread and of more are minutes apart."""
    alone = {run["size"]: run for run in runs if run["threads"] == 1}
    pairs = [(run, alone[run["size"]]) for run in runs if run["threads"] > 1 and run["size"] in alone]
    peers = [peer for peer in NAMES if any(peer in run["summary"] and peer in one["summary"] for run, one in pairs)]
    lines = [
        "### Several threads over one",
        "",
        "| | " + " | ".join(f"{run['size']}, {run['threads']}" for run, _ in pairs) + " |",
        "| --- |" + " ---: |" * len(pairs),
        "| GEMM peak | " + " | ".join(f"{_peak(run) / _peak(one):.2f}" for run, one in pairs) + " |",
    ]
    for peer in peers:
        cells = (_speedup(run["summary"].get(peer), one["summary"].get(peer)) for run, one in pairs)
        lines.append(f"| {NAMES[peer]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" if pairs else ""


def _speedup(summary: dict[str, Any] | None, of_one: dict[str, Any] | None) -> str:
    return f"{summary['tokens_per_s'] / of_one['tokens_per_s']:.2f}" if summary and of_one else ""


def _peak(run: dict[str, Any]) -> float:
    return median(r["gemm_flops"] for r in run["rounds"])


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Bars of each peer's speed relative to the yardstick's; runs need not have the same peers."""
    runs = [run for run in runs if YARDSTICK in run["summary"]]
    if runs:
        draw_bars(
            runs,
            {peer: name for peer, name in NAMES.items() if any(peer in run["summary"] for run in runs)},
            path,
            ratio=lambda run, peer: run["summary"].get(peer, {"ratio": 0.0})["ratio"],
            group=lambda run: run["size"],
            label="training speed relative to Hugging Face",
        )
