"""BLEU against wall clock for Dragoman and its peers' own training: `python -m benchmarks.time_to_quality.run`.

One after the other, each with the machine to itself. What is finished is kept in `.bench/time_to_quality` and not run
again, so the work can be done in pieces; the report is made from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks.environments import ENVIRONMENTS, ROOT
from benchmarks.machine import machine
from benchmarks.time_to_quality import clock
from benchmarks.time_to_quality.report import draw, table
from benchmarks.time_to_quality.systems import fairseq, joeynmt
from benchmarks.time_to_quality.text import FILES, SRC, TGT
from benchmarks.training import THREADS, Corpus, measure

_PEERS: dict[str, clock.Peer] = {
    "fairseq": fairseq.RECOMMENDED,
    "joeynmt": joeynmt.RECOMMENDED,
    "fairseq-tiny": fairseq.TINY,
    "joeynmt-tiny": joeynmt.TINY,
}
_SCRATCH = ENVIRONMENTS / "time_to_quality"
_HERE = Path(__file__).resolve().parent


def gather(minutes: float) -> dict[str, Any]:
    """All results that are there."""
    peers = {name: _peer_folder(name, minutes) / "result.json" for name in _PEERS}
    budgets = {path.name.partition("-")[2]: path / "result.json" for path in _SCRATCH.glob("ours-*")}
    found = [{"budget": budget} | json.loads(path.read_text()) for budget, path in budgets.items() if path.exists()]
    return {
        "machine": machine(),
        "threads": THREADS,
        "minutes": minutes,
        "peers": {name: json.loads(path.read_text()) for name, path in peers.items() if path.exists()},
        "ours": sorted(found, key=lambda point: point["seconds"]),
    }


def _peer_folder(name: str, minutes: float) -> Path:
    return _SCRATCH / f"{name}-{minutes:g}m"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default_data = os.environ.get("DRAGOMAN_DATA", str(ROOT.parent / "shared" / "data" / "multi30k"))
    parser.add_argument("--data", type=Path, default=default_data, help="a folder with Multi30k's .en.gz and .de.gz")
    parser.add_argument("--minutes", type=float, default=20, help="of wall clock for each peer")
    parser.add_argument("--ours-budgets", nargs="+", default=["1m", "2m", "4m", "8m"], help="a run of ours for each")
    parser.add_argument("--only", choices=[*_PEERS, "ours", "report"], help="this part; report runs nothing")
    parser.add_argument("--again", action="store_true", help="run parts that are finished, too")
    parser.add_argument("--out", type=Path, default=_HERE / "results.json", help="and .png and .md beside it")
    args = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what runs is ended first
    data = args.data.resolve()
    for name, peer in _PEERS.items():
        if args.only in (None, name):
            folder = _peer_folder(name, args.minutes)
            _forget(folder, args.again)
            clock.measure(peer, data, folder, args.minutes)
    if args.only in (None, "ours"):
        corpus = Corpus(SRC, TGT, **{split: data / name for split, name in FILES.items()})
        for budget in args.ours_budgets:
            folder = _SCRATCH / f"ours-{budget}"
            _forget(folder, args.again)
            measure(corpus, folder, ["--budget", budget])

    results = gather(args.minutes)
    args.out.write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(table(results))
    draw(results, args.out.with_suffix(".png"))
    print(table(results))


def _forget(folder: Path, is_wanted: bool) -> None:
    if is_wanted:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
