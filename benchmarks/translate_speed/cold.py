"""The cold start: from the start of a process to its end, one sentence, beside a script that only does the same.

Both with CTranslate2 in int8, with files that are there already, in turns. Once in an environment without torch, where
`pip install dragoman` alone would be, and once in the one that is running, which has torch.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dragoman
from benchmarks.driver import in_turn, say
from benchmarks.environments import python_of

_N_STARTS = 15
_BARE = Path(__file__).resolve().parent / "bare.py"
_OURS = "from dragoman.cli.main import main; main()"  # what the installed command does


def measure_cold(run: Path, sentences: list[str]) -> dict[str, Any]:
    """The time of every start, by environment and program, and the sentence."""
    for shortlist in (False, True):  # makes the files of the script's CTranslate2, and of ours
        search = dragoman.load(run, engine="ct2", shortlist=shortlist).config.search
    sentence = sorted(sentences, key=len)[len(sentences) // 2]
    environments = {"without torch": python_of("ctranslate2"), "with torch": Path(sys.executable)}
    return {
        "sentence": sentence,
        "starts": {
            name: _measure(python, run, sentence, search.beam, search.length_penalty)
            for name, python in environments.items()
        },
    }


def _measure(python: Path, run: Path, sentence: str, beam: int, alpha: float) -> dict[str, list[dict[str, float]]]:
    commands = {
        "ours": [python, "-c", _OURS, "translate", "--model", run, "--engine", "ct2"],
        "bare": [python, _BARE, run, beam, alpha],
    }
    starts: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    answers = {name: _start(command, sentence)[0] for name, command in commands.items()}  # and files are in memory now
    if answers["ours"] != answers["bare"]:
        say(f"cold start: the two translate differently: {answers}")
    for number in range(_N_STARTS):
        for name in in_turn(list(commands), number):
            starts[name].append(_start(commands[name], sentence)[1])
    return starts


def _start(command: Sequence[object], sentence: str) -> tuple[str, dict[str, float]]:
    """What a process prints, and the seconds from its start to its end, by the wall clock and of work."""
    package = str(Path(dragoman.__file__).parent.parent)  # the one that is running, in both environments
    wall, cpu = time.perf_counter(), _cpu_s()
    done = subprocess.run(
        [str(word) for word in command],
        input=sentence + "\n",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    return done.stdout.strip(), {"wall_s": time.perf_counter() - wall, "cpu_s": _cpu_s() - cpu}


def _cpu_s() -> float:
    """Of all processes that have been started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
