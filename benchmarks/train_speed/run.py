"""Times training updates of Dragoman and its peers side by side: `python -m benchmarks.train_speed.run`.

Every peer is a process of its own that waits while another works. They take turns in rounds, each time on the same
batches, and a matrix-product peak is measured in every round, so a change in the machine's speed meets all alike.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.driver import Worker, check_memory, cores_for, in_turn, say
from benchmarks.environments import ENVIRONMENTS, ROOT, python_of
from benchmarks.machine import machine
from benchmarks.train_speed.batches import write_batches
from benchmarks.train_speed.flops import update_flops
from benchmarks.train_speed.report import OURS, draw, scaling, summarize, table
from benchmarks.train_speed.workers.protocol import SIZES, Batch, read_batches

PEERS = (*OURS, "huggingface", "pytorch", "fairseq", "opennmt", "sockeye", "joeynmt")
_UPDATES = {"tiny": 8, "small": 4, "base": 1}  # per round: a few seconds for each peer
_SCRATCH = ENVIRONMENTS / "train_speed"
_HERE = Path(__file__).resolve().parent


def measure(peers: list[str], size: str, threads: int, n_rounds: int, n_updates: int, batches: Path) -> dict[str, Any]:
    """All rounds of one size and number of threads, raw."""
    core = cores_for(1)[0] if threads == 1 else None
    contents, vocab_size = read_batches(str(batches))
    gemm = _worker("gemm", python_of("ours"), size, batches, threads, core)
    workers: list[Worker] = []
    try:
        gemm.answer()
        about = {}
        largest = 0.0
        for peer in peers:  # one after the other: building is work too
            check_memory(peer, largest)
            worker = _worker(peer, _python(peer), size, batches, threads, core)
            workers.append(worker)
            about[peer] = worker.answer()
            _check_first_loss(peer, worker.ask("run", 1)["loss"], vocab_size)
            largest = max(largest, worker.ask("run", n_updates)["peak_rss_mb"])
            say(f"{peer} {about[peer]['version']}: {about[peer]['parameters']:,} parameters")
        done, rounds = 1 + n_updates, []
        for r in range(n_rounds):
            gemm_flops = gemm.ask("run", 1)["flops"]
            reports = {worker.peer: worker.ask("run", n_updates) for worker in in_turn(workers, r)}
            work = [contents[i % len(contents)] for i in range(done, done + n_updates)]
            rounds.append({"gemm_flops": gemm_flops, "flops": _flops(size, vocab_size, work), "peers": reports})
            done += n_updates
            say(f"round {r + 1} of {n_rounds}: GEMM {gemm_flops / 1e9:.0f} GFLOP/s, " + _speeds(reports))
    finally:
        for worker in [gemm, *workers]:
            worker.end()
    return {"size": size, "threads": threads, "updates": n_updates, "about": about, "rounds": rounds}


def _worker(peer: str, python: Path, size: str, batches: Path, threads: int, core: int | None) -> Worker:
    waiting = ["env", "OMP_WAIT_POLICY=PASSIVE"] if peer in OURS else []  # as `dragoman` sets it for itself
    command = [*waiting, python, "-m", f"benchmarks.train_speed.workers.{peer.replace('-', '_')}"]
    command += ["--size", size, "--batches", batches, "--threads", threads]
    command += [] if core is None else ["--core", core]
    return Worker(peer, command, _SCRATCH / f"{peer}.log", threads)


def _python(peer: str) -> Path:
    return python_of("ours" if peer in OURS else peer)


def _flops(size: str, vocab_size: int, work: list[Batch]) -> float:
    return sum(update_flops(SIZES[size], vocab_size, batch) for batch in work)


def _check_first_loss(peer: str, loss: float, vocab_size: int) -> None:
    """An untrained model knows nothing: about ln V nats a token (JoeyNMT reports 1.2 less, the targets' entropy)."""
    if abs(loss - math.log(vocab_size)) > 1.5:
        sys.exit(f"{peer} starts with a loss of {loss:.2f}, not {math.log(vocab_size):.1f}: it is not the same model")


def _speeds(reports: dict[str, dict[str, Any]]) -> str:
    return ", ".join(f"{peer} {report['tgt_tokens'] / report['wall_s']:.0f}" for peer, report in reports.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, help="per round and peer; 8 tiny, 4 small, 1 base unless given")
    default_data = os.environ.get("DRAGOMAN_DATA", str(ROOT.parent / "shared" / "data" / "multi30k"))
    parser.add_argument("--data", type=Path, default=default_data, help="a folder with train.en.gz and train.de.gz")
    parser.add_argument("--out", type=Path, default=_HERE / "results.json")
    args = parser.parse_args()

    for peer in args.peers:
        _python(peer)
    batches = _SCRATCH / "batches.npz"
    write_batches(args.data, batches)
    kept = _others(args.out, args.sizes, args.threads)
    results: dict[str, Any] = {"runs": kept}
    for threads in args.threads:
        for size in args.sizes:
            say(f"{size}, {threads} thread(s)")
            updates = args.updates or _UPDATES[size]
            raw = measure(args.peers, size, threads, args.rounds, updates, batches)
            run = raw | {"machine": machine(), "summary": summarize(raw)}
            results["runs"] = sorted(
                [*results["runs"], run], key=lambda run: (run["threads"], list(SIZES).index(run["size"]))
            )
            args.out.write_text(json.dumps(results, indent=1) + "\n")  # so far: a base run is long
            print(table(run), flush=True)
    args.out.with_suffix(".md").write_text("\n".join([*map(table, results["runs"]), scaling(results["runs"])]))
    draw(results["runs"], args.out.with_suffix(".png"))


def _others(out: Path, sizes: list[str], threads: list[int]) -> list[dict[str, Any]]:
    """What the file has of sizes and threads that are not measured now."""
    runs = json.loads(out.read_text())["runs"] if out.exists() else []
    return [run for run in runs if run["size"] not in sizes or run["threads"] not in threads]


if __name__ == "__main__":
    main()
