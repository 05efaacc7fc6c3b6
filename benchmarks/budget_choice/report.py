"""What the runs say, as a table."""

from __future__ import annotations

from typing import Any

from dragoman.cli.duration import seconds


def table(results: dict[str, Any]) -> str:
    """Markdown: for each text what was trained, how near to its budget it ended, and how far the plan is ahead."""
    budget_s = seconds(results["budget"])
    lines = [
        "| text | chosen by | width | layers | updates | time, of the budget | BLEU validation | BLEU test |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for text, choices in results["texts"].items():
        for choice, point in choices.items():
            how = "**the plan**" if choice == "plan" else f"`--preset {choice}`"
            took = f"{point['seconds']:.1f} s, {point['seconds'] / budget_s:.1%}"
            size = f"{point['d_model']} | {point['n_layers']} + {point['n_layers']} | {point['updates']:,}"
            lines.append(f"| {text} | {how} | {size} | {took} | {point['valid_bleu']:.2f} | {point['test_bleu']:.2f} |")
    cores = f"{results['threads']} core{'s' * (results['threads'] > 1)}"
    lines += [
        "",
        f"`--budget {results['budget']}` on {cores}. BLEU of the plan less that of the better preset, test text:",
        "",
    ]
    for text, choices in results["texts"].items():
        presets = {name: point["test_bleu"] for name, point in choices.items() if name != "plan"}
        if presets and "plan" in choices:
            best = max(presets, key=lambda name: presets[name])
            lines.append(f"- {text}: {choices['plan']['test_bleu'] - presets[best]:+.2f} (`{best}`)")
    return "\n".join(lines) + "\n"
