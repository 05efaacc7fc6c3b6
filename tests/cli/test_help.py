"""Help answers at once: without torch, and with what the commands really take."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from dragoman.cli.main import dragoman, run
from dragoman.config import PRESETS

COMMANDS = dragoman.list_commands(click.Context(dragoman))

# Runs each command line in one process, which must not have loaded torch after any of them.
_PROBE = """
import contextlib, io, json, sys
from dragoman.cli.main import run
answers = []
for args in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run(args)
    heavy = [name for name in ("torch", "sacrebleu", "sentencepiece", "matplotlib") if name in sys.modules]
    answers.append([code, out.getvalue(), heavy])
print(json.dumps(answers))
"""


def test_help_and_version_load_nothing_heavy() -> None:
    lines = [["--help"], ["--version"], [], *([name, "--help"] for name in COMMANDS)]
    ended = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps(lines)], capture_output=True, text=True, env={**os.environ}
    )
    assert ended.returncode == 0, ended.stderr
    for args, (code, out, heavy) in zip(lines, json.loads(ended.stdout), strict=True):
        assert code == 0, args
        assert heavy == [], args
        assert out.startswith("dragoman, version " if args == ["--version"] else "Usage: dragoman"), args


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_line_in_the_list(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [words for words in listed if words[0] == name and len(words) == 2]


@pytest.mark.parametrize("name", ["train", "distill"])
def test_training_offers_the_presets_there_are(name: str) -> None:
    command = dragoman.get_command(click.Context(dragoman), name)
    assert command is not None
    preset = next(parameter for parameter in command.params if parameter.name == "preset")
    assert isinstance(preset.type, click.Choice)
    assert list(preset.type.choices) == list(PRESETS)
