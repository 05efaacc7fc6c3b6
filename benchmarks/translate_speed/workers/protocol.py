"""What a worker does when it is told to (benchmarks/worker.py says how):

    run                 translates the whole text, leaves the translations in a file, and says how long that took
    singles FIRST STEP  translates every STEP-th of the single sentences one by one, and says how long each took
    quit                ends

With --tune it looks for the settings with which it is fastest instead, says hello with them, and ends: the measured one
is a fresh process, whose memory has not seen the search.

Only the standard library: every system's environment has that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchmarks.worker import cpu_s, forget_peak_rss, obey, peak_rss_mb, stay_on

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
Settings = dict[str, Any]
T = TypeVar("T")
_TOLERANCE = 1e-4  # of a log-probability
_N_WARM = 2  # single sentences at the start of a turn that are not counted: others had the caches before
_N_TUNED = 250  # sentences of the text, evenly spaced, by which settings for the whole are compared
_N_TRIED = 30  # single sentences by which settings are compared


@dataclass(frozen=True)
class Task:
    """What is to be translated, with which model: the same for all systems."""

    run: str  # the run folder, which holds model.safetensors, subwords.model and ct2/<precision>
    model: dict[str, Any]  # the settings of the model
    sentences: list[str]
    singles: list[str]  # some of them, to be translated one by one
    beam: int
    length_penalty: float  # the paper's alpha
    max_extra_tokens: int
    known: list[tuple[list[int], list[int], list[float]]]  # source, target, log-probabilities of it and of its end

    @property
    def exponent(self) -> float:
        """Of the length, for systems that divide by length ** exponent: ranks as the paper's penalty at a length of 20.

        The paper divides by ((5 + length) / 6) ** alpha, of which the logarithm grows by alpha / (5 + length) a token.
        """
        return self.length_penalty * 20 / (5 + 20)


class Output(NamedTuple):
    text: str
    n_tokens: int  # subwords of the translation, without its end


class RefusedError(Exception):
    """The system cannot do this model, for the reason given."""


@dataclass(frozen=True)
class System:
    """A model ready to translate."""

    version: str
    translate: Callable[[Sequence[str]], list[Output]]  # text in, text out, in order
    translate_one: Callable[[str], Output]
    settings: str = ""  # those it runs with, in words


Build = Callable[[Task, int, Settings], System]  # from the task, the number of threads and the settings
Tune = Callable[[Task, int, Settings], tuple[Settings, dict[str, float]]]  # the best, and the seconds of each tried


def work(build: Build, tune: Tune | None = None) -> None:
    """The main program of a worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="for the translations")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cores", type=int, nargs="+", required=True)
    parser.add_argument("--settings", type=json.loads, required=True)
    parser.add_argument("--tune", action="store_true")
    args = parser.parse_args()
    stay_on(args.cores)
    task = Task(**json.loads(args.task.read_text()))
    try:
        if args.tune:
            every = max(1, len(task.sentences) // _N_TUNED)
            sample = replace(task, sentences=task.sentences[::every])
            best, tried = (args.settings, {}) if tune is None else tune(sample, args.threads, args.settings)
            obey({}, {"best": best, "tried": tried})
        else:
            system = build(task, args.threads, args.settings)
            forget_peak_rss()  # of loading, and of converting where the weights are not in a form of its own
            hello = {"version": system.version, "settings": system.settings}
            obey({"run": lambda: _run(system, task, args.output), "singles": _singles(system, task)}, hello)
    except RefusedError as refusal:
        obey({}, {"refused": str(refusal)})


def _run(system: System, task: Task, output: Path) -> dict[str, float]:
    wall, cpu = time.perf_counter(), cpu_s()
    outputs = system.translate(task.sentences)
    wall, cpu = time.perf_counter() - wall, cpu_s() - cpu
    output.write_text(json.dumps(outputs))
    n_tokens = sum(one.n_tokens for one in outputs)
    return {"wall_s": wall, "cpu_s": cpu, "tgt_tokens": n_tokens, "peak_rss_mb": peak_rss_mb()}


def _singles(system: System, task: Task) -> Callable[[int, int], dict[str, Any]]:
    def singles(first: int, step: int) -> dict[str, Any]:
        for text in task.singles[:_N_WARM]:
            system.translate_one(text)
        return {"seconds": [seconds(lambda: system.translate_one(text)) for text in task.singles[first::step]]}  # noqa: B023

    return singles


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_of_singles(system: System, task: Task) -> float:
    """The median over a few, by which settings for single sentences are compared."""
    system.translate_one(task.singles[0])
    times = sorted(seconds(lambda: system.translate_one(text)) for text in task.singles[:_N_TRIED])  # noqa: B023
    return times[len(times) // 2]


def fastest(tried: dict[T, float]) -> T:
    return min(tried, key=lambda one: tried[one])


def by_length(encoded: Sequence[Sequence[T]]) -> list[int]:
    """Their places, the longest first."""
    return sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))


def check(found: Iterable[Sequence[float]], task: Task) -> None:
    """Stops unless log-probabilities that our float32 gave are found to rounding: the weights are then the same."""
    worst = max(
        abs(one - other)
        for ours, theirs in zip((known[2] for known in task.known), found, strict=True)
        for one, other in zip(ours, theirs, strict=True)
    )
    if not worst <= _TOLERANCE:
        raise SystemExit(f"its log-probabilities differ by up to {worst:.2g} from ours: it is not the same model")
