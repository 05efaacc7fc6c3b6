"""Runs the benchmark: `python -m benchmarks.serve_load.run`. What it measures is said in benchmarks/README.md."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.serve_load.clients import Account, clients
from benchmarks.serve_load.hostile import attack
from benchmarks.serve_load.server import started
from dragoman.text.builtin import builtin_corpus

_HERE = Path(__file__).parent
_WORK = Path(".bench") / "serve_load"
_N_ROUNDS = 6  # so that a change in the speed of the machine meets all alike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="an English-German run folder; else `dragoman demo` makes one")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--left", type=int, default=10_000, help="connections that are opened and left")
    parser.add_argument("--only", choices=["load", "full", "hostile"], nargs="*", default=["load", "full", "hostile"])
    args = parser.parse_args()
    _WORK.mkdir(parents=True, exist_ok=True)
    model = args.model or _demo()
    texts = [src for src, _ in builtin_corpus(n_train=4000, n_valid=10, n_test=10).train][-1000:]
    path = _HERE / "results.json"
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    report["machine"] = machine()
    with started(model, _WORK) as server:
        alone = asyncio.run(clients(server.port, texts, n=1, seconds=600, once=True))
        expected = alone.answers
    if "load" in args.only:
        report["load"] = _load(model, texts, expected, args.clients, args.seconds)
    if "full" in args.only:
        report["full"] = _full(model, texts, expected)
    if "hostile" in args.only:
        with started(model, _WORK) as server:
            report["hostile"] = asyncio.run(attack(server, texts, expected, args.left))
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(report, indent=1, ensure_ascii=False))


def _load(model: Path, texts: list[str], expected: dict[str, bytes], n: int, seconds: float) -> dict[str, Any]:
    """One client, many clients of a server that does one thing at a time, many clients of ours, by turns."""
    settings = {
        "one client": (1, ()),
        f"{n} clients, no batching": (n, ("--max-batch", "1", "--threads", "1")),
        f"{n} clients": (n, ()),
    }
    accounts, cpu_s = {name: Account() for name in settings}, dict.fromkeys(settings, 0.0)
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(started(model, _WORK, *flags)) for name, (_, flags) in settings.items()
        }  # fmt: skip
        for name, server in servers.items():  # to warm up
            asyncio.run(clients(server.port, texts, n=settings[name][0], seconds=2))
        for _ in range(_N_ROUNDS):
            for name, server in servers.items():
                before = server.cpu_s()
                found = asyncio.run(
                    clients(server.port, texts, n=settings[name][0], seconds=seconds / _N_ROUNDS, expected=expected)
                )
                cpu_s[name] += server.cpu_s() - before
                accounts[name].add(found)
                print(name, round(found.per_s()), "requests/s", file=sys.stderr)
        rows = {
            name: {
                "requests_per_s": round(account.per_s(), 1),
                "p50_ms": round(account.ms(0.5), 1),
                "p99_ms": round(account.ms(0.99), 1),
                "cpu_ms_per_request": round(1000 * cpu_s[name] / max(1, len(account.latencies_s)), 2),
                "requests": len(account.latencies_s),
                "refused": len(account.refusals_s) + len(account.other),
                "wrong": account.n_wrong,
                "rss_mb": round(servers[name].rss_mb()),
            }
            for name, account in accounts.items()
        }
    first, second, ours = (row["requests_per_s"] for row in rows.values())
    return {"rows": rows, "times one client": round(ours / first, 2), "times no batching": round(ours / second, 2)}


def _full(model: Path, texts: list[str], expected: dict[str, bytes]) -> dict[str, Any]:
    """Ten times as many clients as the queue has places: some are refused, at once, and the others are answered."""
    with started(model, _WORK, "--max-queue", "32") as server:
        account = asyncio.run(clients(server.port, texts, n=320, seconds=10, expected=expected))
    return {
        "answered": len(account.latencies_s),
        "wrong": account.n_wrong,
        "p99_ms": round(account.ms(0.99), 1),
        "refused": len(account.refusals_s),
        "refused_p50_ms": round(account.ms(0.5, account.refusals_s), 1),
        "refused_p99_ms": round(account.ms(0.99, account.refusals_s), 1),
        "other": sorted(set(account.other)),
    }


def _demo() -> Path:
    out = _WORK / "demo"
    if not (out / "model.safetensors").exists():
        command = [sys.executable, "-c", "from dragoman.cli.main import main; main()", "demo", "--out", str(out)]
        subprocess.run(command, check=True)
    return out


if __name__ == "__main__":
    main()
