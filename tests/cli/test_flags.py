"""The flags of every command, written down: a new one is a decision, not an accident."""

from __future__ import annotations

import click
import pytest

from dragoman.cli.main import dragoman

FLAGS = {
    "demo": {"--out", "--seed", "--threads"},
    "train": {
        "--src", "--tgt", "--pairs", "--valid-src", "--valid-tgt", "--valid-pairs", "--out", "--preset", "--budget",
        "--steps", "--epochs", "--vocab-size", "--seed", "--device", "--threads", "--init", "--config", "--set",
        "--resume",
    },
    "distill": {
        "--teacher", "--src", "--tgt", "--valid-src", "--valid-tgt", "--beam", "--out", "--preset", "--budget",
        "--steps", "--epochs", "--seed", "--device", "--threads", "--config", "--set", "--resume",
    },
    "translate": {
        "file", "--model", "--output", "--resume", "--beam", "--length-penalty", "--nbest", "--sample", "--temperature",
        "--top-k", "--top-p", "--seed", "--prefix", "--no-repeat-ngram", "--glossary", "--unk-copy", "--scores",
        "--alignments", "--batch-tokens", "--engine", "--precision", "--shortlist", "--stream", "--device",
        "--threads", "--format",
    },
    "evaluate": {
        "--model", "--src", "--ref", "--against", "--beam", "--length-penalty", "--engine", "--device",
        "--threads", "--json",
    },
    "serve": {
        "--model", "--host", "--port", "--threads", "--engine", "--precision", "--api-key-file",
        "--requests-per-minute", "--max-chars", "--max-texts", "--max-body-bytes", "--max-file-bytes", "--max-queue",
        "--max-batch", "--timeout", "--files", "--cors",
    },
    "attention": {"text", "--model", "--target", "--kind", "--layer", "--head", "--output"},
    "heads": {"--model", "--src", "--tgt", "--bleu", "--output", "--device", "--threads", "--json"},
    "average": {"checkpoints", "--out"},
    "shortlist": {"--model", "--src", "--tgt"},
    "inspect": {"run", "--json"},
}  # fmt: skip


def flags(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("name", FLAGS)
def test_the_flags_are_those_decided_on(name: str) -> None:
    command = dragoman.get_command(click.Context(dragoman), name)
    assert command is not None
    assert flags(command) == FLAGS[name]


def test_the_commands_are_those_decided_on() -> None:
    assert set(dragoman.list_commands(click.Context(dragoman))) == FLAGS.keys()
