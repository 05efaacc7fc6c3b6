"""What the rounds say: medians, ratios, percentiles, tables and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bars import draw_bars
from benchmarks.machine import vectors
from benchmarks.translate_speed.systems import HUGGING_FACE, OURS, REFERENCES, SYSTEMS, YARDSTICK

_BUSY = 0.95  # share of the wall clock below which a thread evidently had to wait for others


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summarize(run: dict[str, Any], n_sentences: int) -> dict[str, dict[str, Any]]:
    """Per system: medians over the rounds. Ratios are taken within a round."""
    rounds, about = run["rounds"], run["about"]
    reference = next((about[name]["bleu"] for name in REFERENCES if name in about), None)
    summary = {}
    for name, one in about.items():
        present = [r for r in rounds if name in r["systems"]]
        reports = [r["systems"][name] for r in present]
        tokens = [report["tgt_tokens"] / report["wall_s"] for report in reports]
        sentences = [n_sentences / report["wall_s"] for report in reports]
        macs = sum(one["macs"].values())
        times = run["latencies"][name]
        summary[name] = {
            "version": one["version"],
            "settings": one["settings"],
            "tokens_per_s": median(tokens),
            "sentences_per_s": median(sentences),
            "sentences_per_s_min": min(sentences),
            "sentences_per_s_max": max(sentences),
            "gmacs_per_s": median(macs / report["wall_s"] for report in reports) / 1e9,
            "int8_share": median(macs / r["systems"][name]["wall_s"] / r["peaks"]["int8"] for r in present),
            "p50_ms": 1000 * percentile(times, 50),
            "p99_ms": 1000 * percentile(times, 99),
            "peak_rss_mb": max(report["peak_rss_mb"] for report in reports),
            "bleu": one["bleu"],
            "bleu_difference": None if reference is None else one["bleu"] - reference,
            "ratios": {other: _ratio(rounds, name, other, "wall_s") for other in about},
            "cpu_ratios": {other: _ratio(rounds, name, other, "cpu_s") for other in about},
            "is_disturbed": min(report["cpu_s"] / report["wall_s"] for report in reports) < _BUSY,
        }
    return summary


def _ratio(rounds: list[dict[str, Any]], name: str, other: str, clock: str) -> float:
    """How many times as fast as the other, in sentences: the median over the rounds that have both."""
    both = [r["systems"] for r in rounds if name in r["systems"] and other in r["systems"]]
    return median(systems[other][clock] / systems[name][clock] for systems in both)


def table(run: dict[str, Any]) -> str:
    """Markdown: one model, beam and number of threads."""
    summary, shape, threads = run["summary"], run["shape"], run["threads"]
    peaks = {kind: median(r["peaks"][kind] for r in run["rounds"]) / 1e9 for kind in ("float32", "int8")}
    lines = [
        f"### {run['model']}, beam {run['beam']}, {threads} thread{'s' * (threads > 1)}",
        "",
        f"d_model {shape['d_model']}, d_ff {shape['d_ff']}, {shape['n_encoder_layers']} + {shape['n_decoder_layers']} "
        f"layers, {shape['vocab_size']:,} subwords, {shape['norm']}-norm; {run['sentences']} sentences, "
        f"{len(run['rounds'])} rounds. Matrix products: {peaks['int8']:.0f} GMAC/s in int8, {peaks['float32']:.0f} in "
        f"float32 (median){vectors(run)}.",
        "",
        "| | sentences/s (min to max) | tokens/s | ÷ CTranslate2 int8 | by CPU time | of int8 peak "
        "| p50, p99 of one sentence | peak memory | BLEU | to our float32 | settings |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in sorted(summary, key=lambda name: -summary[name]["sentences_per_s"]):
        s = summary[name]
        ratios = [f"{s[kind][YARDSTICK]:.2f}" if YARDSTICK in summary else "" for kind in ("ratios", "cpu_ratios")]
        difference = "" if s["bleu_difference"] is None else f"{s['bleu_difference']:+.2f}"
        lines.append(
            f"| {SYSTEMS[name].name} {s['version']} | {s['sentences_per_s']:.1f} ({s['sentences_per_s_min']:.1f} to "
            f"{s['sentences_per_s_max']:.1f}) | {s['tokens_per_s']:,.0f} | {' | '.join(ratios)} "
            f"| {s['int8_share']:.0%} | {s['p50_ms']:.1f}, {s['p99_ms']:.1f} ms | {s['peak_rss_mb']:,.0f} MB "
            f"| {s['bleu']:.2f} | {difference} | {s['settings']} |"
        )
    lines += ["", *_verdict(summary), _arithmetic(run)]
    lines += [f"{SYSTEMS[name].name} was left out: {reason}." for name, reason in run["refused"].items()]
    if any(s["is_disturbed"] for s in summary.values()):
        lines.append("The machine was busy with other work: a system did not get a whole core all the time.")
    return "\n".join(lines) + "\n"


def _verdict(summary: dict[str, Any]) -> list[str]:
    """What ours is to the others, in one sentence."""
    if OURS not in summary:
        return []
    ours, said = summary[OURS], []
    if YARDSTICK in summary:
        said.append(f"{ours['ratios'][YARDSTICK]:.2f} times CTranslate2 int8")
    rivals = [name for name in HUGGING_FACE if name in summary]
    if rivals:
        said.append(f"{min(ours['ratios'][name] for name in rivals):.2f} times the faster Hugging Face")
    if YARDSTICK in summary:
        said.append(f"median latency {ours['p50_ms'] / summary[YARDSTICK]['p50_ms']:.2f} times CTranslate2 int8's")
    if ours["bleu_difference"] is not None:
        said.append(f"BLEU {ours['bleu_difference']:+.2f} to our float32")
    return [f"Dragoman: {', '.join(said)}."] if said else []


def _arithmetic(run: dict[str, Any]) -> str:
    """Where the multiply-adds are, of ours or of the first that was measured."""
    name = OURS if OURS in run["about"] else next(iter(run["about"]))
    macs = run["about"][name]["macs"]
    total = sum(macs.values())
    shares = ", ".join(f"{part} {value / total:.0%}" for part, value in macs.items())
    return f"Arithmetic that a translation needs: {total / 1e9:,.0f} GMAC ({shares})."


def cold_table(cold: list[dict[str, Any]]) -> str:
    """Markdown: the cold start of each model."""
    lines = [
        "### Cold start, one sentence",
        "",
        "| | `dragoman translate` | bare script | ratio | by CPU time |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in cold:
        for environment, starts in one["starts"].items():
            ours, bare = starts["ours"], starts["bare"]
            seconds = " | ".join(f"{median(start['wall_s'] for start in each):.3f} s" for each in (ours, bare))
            pairs = list(zip(ours, bare, strict=True))
            ratios = " | ".join(f"{median(a[clock] / b[clock] for a, b in pairs):.2f}" for clock in ("wall_s", "cpu_s"))
            lines.append(f"| {one['model']}, {environment}, {len(pairs)} starts each | {seconds} | {ratios} |")
    return "\n".join(lines) + "\n"


def markdown(results: dict[str, Any]) -> str:
    """All tables."""
    cold = [cold_table(results["cold"])] if results["cold"] else []
    return "\n".join([*(table(run) for run in results["runs"]), *cold])


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Bars of each system's speed relative to the yardstick's."""
    runs = [run for run in runs if YARDSTICK in run["summary"]]
    if runs:
        draw_bars(
            runs,
            {name: entry.name for name, entry in SYSTEMS.items() if any(name in run["summary"] for run in runs)},
            path,
            ratio=lambda run, name: run["summary"][name]["ratios"][YARDSTICK] if name in run["summary"] else 0,
            group=lambda run: f"{run['model']}\nbeam {run['beam']}",
            label="translation speed relative to CTranslate2 int8",
        )
