"""CTranslate2 by itself, as its documentation says, with SentencePiece before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece

from benchmarks.translate_speed.workers.protocol import (
    Output,
    Settings,
    System,
    Task,
    check,
    fastest,
    seconds,
    seconds_of_singles,
    work,
)  # fmt: skip

_BATCHES = (
    *(("tokens", size) for size in (512, 1024, 2048, 4096, 8192)),
    *(("examples", size) for size in (16, 32, 64, 128, 256)),
)


def build(task: Task, threads: int, settings: Settings) -> System:
    """With the settings that `tune` has found: `precision`, `batch`, and `layout` and `layout_for_one` of threads."""
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(Path(task.run) / "subwords.model"))
    translators: dict[tuple[int, int], Any] = {}  # by the layout of their threads

    def translator_of(layout: list[int]) -> Any:
        if tuple(layout) not in translators:
            translators[tuple(layout)] = _translator(task, settings["precision"], layout)
        return translators[tuple(layout)]

    def translate(sentences: Sequence[str], layout: list[int] = settings["layout"]) -> list[Output]:
        pieces = subwords.encode(sentences, out_type=str)
        kind, size = settings["batch"]
        results = translator_of(layout).translate_batch(
            pieces,
            beam_size=task.beam,
            length_penalty=task.exponent,
            max_decoding_length=max(map(len, pieces)) + task.max_extra_tokens,
            max_batch_size=size,
            batch_type=kind,
        )
        found = [result.hypotheses[0] for result in results]
        return [Output(text, len(one)) for text, one in zip(subwords.decode(found), found, strict=True)]

    if settings["precision"] == "float32":
        sources, targets = ([subwords.id_to_piece(known[side]) for known in task.known] for side in (0, 1))
        check([one.log_probs for one in translator_of(settings["layout"]).score_batch(sources, targets)], task)
    words = f"{settings['batch'][1]} {settings['batch'][0]}"
    words += f", {settings['layout'][0]}×{settings['layout'][1]} threads" if threads > 1 else ""
    return System(
        ctranslate2.__version__,
        translate,
        lambda sentence: translate([sentence], settings["layout_for_one"])[0],
        words,
    )


def _translator(task: Task, precision: str, layout: list[int]) -> Any:
    workers, threads_each = layout
    folder = str(Path(task.run) / "ct2" / precision)
    return ctranslate2.Translator(
        folder, compute_type=precision, inter_threads=workers, intra_threads=threads_each, max_queued_batches=-1
    )


def tune(task: Task, threads: int, settings: Settings) -> tuple[Settings, dict[str, float]]:
    """Every size of batch with every layout of the threads, on the very text."""
    layouts = [[threads, 1], [1, threads]][: min(2, threads)]
    tried, of_one, choices = {}, {}, {}
    for layout in layouts:
        for kind, size in _BATCHES:
            chosen = {**settings, "layout": layout, "layout_for_one": layout, "batch": [kind, size]}
            system = build(task, threads, chosen)
            if str(layout) not in of_one:
                of_one[str(layout)] = seconds_of_singles(system, task)
            choices[system.settings] = chosen
            tried[system.settings] = seconds(lambda: system.translate(task.sentences))  # noqa: B023
    layout_for_one = next(layout for layout in layouts if str(layout) == fastest(of_one))
    best = {**choices[fastest(tried)], "layout_for_one": layout_for_one}
    return best, {**tried, **{f"one sentence, {layout} threads": time for layout, time in of_one.items()}}


if __name__ == "__main__":
    work(build, tune)
