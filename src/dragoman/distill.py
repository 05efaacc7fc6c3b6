"""Sequence-level distillation: a student's training text, made by its teachers. Part of the composer `run`.

Kim and Rush, 2016: a small model can learn more from what a large one says than from what people wrote, because it is
more regular. So the training source is translated by beam search, and the student trained on that as on any text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from dragoman.checkpoint.folder import WEIGHTS, checkpoints, write_text
from dragoman.checkpoint.resumable import ResumableFile, identity
from dragoman.config import Config
from dragoman.errors import ConfigError, DataError
from dragoman.prepare import DISTILLED, ENCODED, read_valid
from dragoman.text.clean import Report
from dragoman.text.corpus import TextConfig, read_pairs, read_side
from dragoman.text.lines import count_lines
from dragoman.translator import load
from dragoman.watch import Translated, Watcher

_TOGETHER = 1024  # lines; always the same ones, so that a run taken up again gets the same text, also in int8
_SURE = 0.02  # share of a budget after which it can be told whether the teachers are quick enough for it
_MOST = 0.5  # share of a budget that they may take

Sources = Iterator[tuple[str, str | None]]  # with what people made of it, if that is to be trained on too


def distill(config: Config, run: Path, watcher: Watcher, clock: Callable[[], float]) -> float:
    """Writes the pairs to train on to the run folder, unless they are there; goes on with what an earlier command left.

    Returns the seconds that earlier commands spent on it and that no checkpoint has counted.
    """
    path = run / DISTILLED
    state = path.with_name("state.json")
    before_s: float = json.loads(state.read_text(encoding="utf-8"))["elapsed_s"] if state.exists() else 0.0
    if not path.exists() and not (run / ENCODED).exists():
        began = clock()
        path.parent.mkdir(exist_ok=True)
        try:
            _write_pairs(config, path, watcher, clock)
        finally:
            write_text(state, json.dumps({"elapsed_s": before_s + clock() - began}))
    return 0.0 if checkpoints(run) else before_s


def _write_pairs(config: Config, path: Path, watcher: Watcher, clock: Callable[[], float]) -> None:
    text, report = config.text, Report()
    assert text.teachers
    read_valid(config, Report())  # so that a mistake in it is not found when hours have gone
    total = sum(1 for _ in _sources(text, report))
    for sentence in report.summary():
        watcher.warn(sentence)
    translator = load(text.teachers, device=config.train.device, threads=config.train.threads)
    watcher.note(f"translating {total:,} lines with {' and '.join(text.teachers)}")
    with ResumableFile(path, _identities(text), resume=True, keep_every=1) as out:
        first = n_done = min(total, out.n_done * _TOGETHER)
        budget_s = None if first else config.train.budget_s  # what is half done need not be given up
        began = clock()
        sources = islice(_sources(text, Report()), first, None)
        while chunk := list(islice(sources, _TOGETHER)):
            translations = translator.translate([src for src, _ in chunk], beam=text.teacher_beam)
            both = zip(chunk, translations, strict=True)
            out.write("".join(_pairs(src, tgt, one.text, one.is_cut) for (src, tgt), one in both))
            n_done += len(chunk)
            passed_s = max(clock() - began, 1e-9)
            per_s = (n_done - first) / passed_s
            watcher.translated(Translated(n_done, total, per_s, eta_s=(total - n_done) / per_s))
            if budget_s is not None and passed_s > _SURE * budget_s:
                _check_time(total / per_s, budget_s)
                budget_s = None
    n_cut = total * (1 if text.tgt is None else 2) - count_lines(path)
    if n_cut == total:
        path.unlink()
        raise DataError(
            f"all {total:,} translations by {' and '.join(text.teachers)} were cut at the limit of length",
            hint="has the teacher learned to translate? see `dragoman inspect`",
        )
    if n_cut:
        watcher.warn(f"{n_cut:,} translations were cut at the limit of length and are not trained on")


def _identities(text: TextConfig) -> dict[str, list[list[int]]]:
    """What changes when a file changes that the translations come from."""
    weights = [Path(teacher) / WEIGHTS for teacher in text.teachers or ()]
    sides = [Path(side) for side in (text.src, text.tgt) if side is not None]
    return {"weights": [identity(file) for file in weights], "text": [identity(file) for file in sides]}


def _sources(text: TextConfig, report: Report) -> Sources:
    """The lines to translate."""
    assert text.src is not None
    if text.tgt is None:
        for line in read_side(text.src, max_len_chars=text.max_len_chars, report=report):
            yield line, None
    else:
        for pair in read_pairs(src=text.src, tgt=text.tgt, max_len_chars=text.max_len_chars, report=report):
            yield pair.src, pair.tgt


def _pairs(src: str, tgt: str | None, translation: str, is_cut: bool) -> str:
    """The lines of JSON that a source line becomes: with the original target, if there is one, and with the new one."""
    targets = [*([] if tgt is None else [tgt]), *([] if is_cut else [translation])]
    return "".join(json.dumps({"src": src, "tgt": target}, ensure_ascii=False) + "\n" for target in targets)


def _check_time(expected_s: float, budget_s: float) -> None:
    if expected_s > _MOST * budget_s:
        raise ConfigError(
            f"translating the text would take about {expected_s:.0f} s of the {budget_s:.0f} s, more than half",
            hint="give more time, a smaller --beam, or less text",
        )
