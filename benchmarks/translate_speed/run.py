"""Times translation by Dragoman and others with the very same weights: `python -m benchmarks.translate_speed.run`.

Every system is a process of its own that sleeps while another works. They take turns in rounds, each time on the whole
text, and the machine's matrix-product peaks are measured in every round, so a change in its speed meets all alike.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.driver import Worker, check_memory, cores_for, in_turn, say
from benchmarks.environments import ENVIRONMENTS, python_of
from benchmarks.machine import machine
from benchmarks.text import bleu, read_lines
from benchmarks.translate_speed.cold import measure_cold
from benchmarks.translate_speed.macs import translation_macs
from benchmarks.translate_speed.report import draw, markdown, summarize, table
from benchmarks.translate_speed.systems import SYSTEMS
from benchmarks.translate_speed.task import make_task, write_task
from benchmarks.translate_speed.workers.protocol import Task
from dragoman.checkpoint.folder import SUBWORDS
from dragoman.tokens.subwords import Subwords

_SCRATCH = ENVIRONMENTS / "translate_speed"
_HERE = Path(__file__).resolve().parent
_SLOW = 5  # times as slow as the fastest: such a system takes part in the first round only


def measure(task: Task, systems: list[str], threads: int, n_rounds: int) -> dict[str, Any]:
    """All rounds of one model, beam and number of threads, raw."""
    cores = cores_for(threads)
    if len(cores) < threads:
        sys.exit(f"{threads} threads need as many cores; there are {len(cores)}")
    path = _SCRATCH / "task.json"
    write_task(task, path)
    command = [python_of("ours"), "-m", "benchmarks.translate_speed.workers.peak", "--cores", *cores]
    peak = Worker("peak", command, _SCRATCH / "peak.log", threads)
    workers: list[Worker] = []
    about: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    try:
        peak.answer()
        largest, took_s = 0.0, {}
        for name in systems:  # one after the other: building and tuning are work too
            check_memory(name, largest)
            worker, hello = _start(name, path, threads, cores)
            if worker is None:
                refused[name] = hello["refused"]
                say(f"{name} is left out: {refused[name]}")
                continue
            workers.append(worker)
            about[name] = hello
            report = worker.ask("run")
            largest, took_s[name] = max(largest, report["peak_rss_mb"]), report["wall_s"]
            say(f"{name} {hello['version']}: {hello['settings']}")
        quick = [worker for worker in workers if took_s[worker.peer] < _SLOW * min(took_s.values())]
        rounds = [_round(r, n_rounds, peak, quick if r else workers) for r in range(n_rounds)]
        outputs = {worker.peer: json.loads(_output(worker.peer).read_text()) for worker in workers}
        # After all rounds: some take other threads or weights for this, whose memory would count.
        singles = [_singles(r, n_rounds, workers) for r in range(n_rounds)]
    finally:
        for worker in [peak, *workers]:
            worker.end()
    latencies = {name: [time for one in singles for time in one[name]] for name in about}
    return {"about": about, "refused": refused, "rounds": rounds, "latencies": latencies, "outputs": outputs}


def _start(name: str, task: Path, threads: int, cores: list[int]) -> tuple[Worker | None, dict[str, Any]]:
    """The system's process, after its tuning if it has one, and what it says first; None if it cannot do the model."""
    entry = SYSTEMS[name]
    command = [python_of(entry.environment), "-m", f"benchmarks.translate_speed.workers.{entry.worker}"]
    command += ["--task", task, "--output", _output(name), "--threads", threads, "--cores", *cores, "--settings"]
    log, settings, tried = _SCRATCH / f"{name}.log", entry.settings, {}
    if entry.is_tuned:
        say(f"{name}: tuning")
        worker = Worker(name, [*command, json.dumps(settings), "--tune"], log, threads)
        hello = worker.answer()
        worker.end()
        if "refused" in hello:
            return None, hello
        settings, tried = hello["best"], hello["tried"]
    worker = Worker(name, [*command, json.dumps(settings)], log, threads)
    hello = worker.answer()
    if "refused" in hello:
        worker.end()
        return None, hello
    return worker, {**hello, "tried": tried}


def _output(name: str) -> Path:
    return _SCRATCH / f"{name}.out.json"


def _round(number: int, n_rounds: int, peak: Worker, workers: list[Worker]) -> dict[str, Any]:
    peaks = peak.ask("run")
    reports = {worker.peer: worker.ask("run") for worker in in_turn(workers, number)}
    speeds = ", ".join(f"{name} {report['tgt_tokens'] / report['wall_s']:.0f}" for name, report in reports.items())
    say(f"round {number + 1} of {n_rounds}: int8 {peaks['int8'] / 1e9:.0f} GMAC/s; tokens/s: {speeds}")
    return {"peaks": peaks, "systems": reports}


def _singles(number: int, n_rounds: int, workers: list[Worker]) -> dict[str, list[float]]:
    return {worker.peer: worker.ask("singles", number, n_rounds)["seconds"] for worker in in_turn(workers, number)}


def score(raw: dict[str, Any], task: Task, references: list[str]) -> dict[str, Any]:
    """The rounds with BLEU and an account of the arithmetic in place of the outputs."""
    subwords = Subwords.load(Path(task.run) / SUBWORDS)
    src_tokens = [len(subwords.encode(text)) for text in task.sentences]
    scored = {key: value for key, value in raw.items() if key != "outputs"}
    for name, outputs in raw["outputs"].items():
        texts, n_tokens = zip(*outputs, strict=True)
        scored["about"][name] |= {
            "bleu": bleu(list(texts), references),
            "macs": translation_macs(task.model, src_tokens, n_tokens, task.beam),
        }
    return scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--src", type=Path, help="the text to translate, plain or .gz")
    parser.add_argument("--ref", type=Path, help="its translation")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", nargs="+", type=int, default=[4, 1])
    parser.add_argument("--peers", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--only", choices=["speed", "cold", "report"], help="this part; report runs nothing")
    parser.add_argument("--out", type=Path, default=_HERE / "results.json", help="and .md and .png beside it")
    args = parser.parse_args()
    if args.only != "report" and not (args.models and args.src and args.ref):
        parser.error("--models, --src and --ref are needed")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: workers are ended first
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {"runs": [], "cold": []}
    if args.only in (None, "speed"):
        for name in args.peers:
            python_of(SYSTEMS[name].environment)
        sentences, references = read_lines(args.src), read_lines(args.ref)
        for run in args.models:
            task = make_task(run, sentences)
            for threads in args.threads:
                for beam in args.beams:
                    what = {"model": run.name, "beam": beam, "threads": threads}
                    say(", ".join(f"{key} {value}" for key, value in what.items()))
                    now = replace(task, beam=beam)
                    raw = score(measure(now, args.peers, threads, args.rounds), now, references)
                    raw |= {"shape": task.model, "sentences": len(sentences), "machine": machine()}
                    keep(results["runs"], {**what, **raw, "summary": summarize(raw, len(sentences))})
                    args.out.write_text(json.dumps(results, indent=1) + "\n")  # so far: all of it takes hours
                    print(table(results["runs"][-1]), flush=True)
    if args.only in (None, "cold"):
        for run in args.models:
            keep(results["cold"], {"model": run.name, "machine": machine(), **measure_cold(run, read_lines(args.src))})
            args.out.write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(markdown(results))
    draw(results["runs"], args.out.with_suffix(".png"))
    print(markdown(results))


def keep(measured: list[dict[str, Any]], one: dict[str, Any]) -> None:
    """Adds a measurement, in place of an earlier one of the same: the work can be done in pieces."""
    which = ("model", "beam", "threads")
    measured[:] = [other for other in measured if any(other.get(key) != one.get(key) for key in which)]
    measured.append(one)


if __name__ == "__main__":
    main()
