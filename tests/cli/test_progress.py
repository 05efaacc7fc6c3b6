"""How training looks: plain lines, or a screen that a terminal keeps up to date."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from small_run import DRAGOMAN, ENVIRONMENT, Corpus, small

from dragoman.cli.duration import duration
from dragoman.cli.progress import Lines, Screen, watcher
from dragoman.watch import Forecast, Progress, Translated, Validation

PROGRESS = Progress(
    step=50, total_steps=200, epoch=2, loss=3.14159, lr=0.00012345, tokens_per_s=12345.6, elapsed_s=61.0, eta_s=183.4,
    last_bleu=None,
)  # fmt: skip
WITH_BLEU = Progress(
    step=100,
    total_steps=200,
    epoch=3,
    loss=2.5,
    lr=1e-3,
    tokens_per_s=999.5,
    elapsed_s=61.0,
    eta_s=5.0,
    last_bleu=12.34,
)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"), (0.4, "0s"), (42, "42s"), (59.4, "59s"), (59.6, "1m00s"), (185, "3m05s"), (3599, "59m59s"),
        (3599.7, "1h00m"), (7620, "2h07m"), (360_000, "100h00m"), (-3, "0s"),
    ],
)  # fmt: skip
def test_a_duration_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines() as lines:
        lines.note("encoding")
        lines.warn("line 3 is odd")
        lines.translated(Translated(1024, 29000, 1234.5, 61))
        lines.progress(PROGRESS)
        lines.progress(WITH_BLEU)
        lines.validated(Validation(100, 2.34567, 12.345, True))
        lines.validated(Validation(150, 2.4, 11.0, False))
        lines.validated(Validation(160, 2.4, 9.0, False, Forecast(2.0, 2.1, 2.2)))
        lines.validated(Validation(170, 2.4, 11.0, False, Forecast(2.0, 2.1, 2.2), Forecast(12.0, 13.0, 15.0)))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "encoding",
        "warning: line 3 is odd",
        "translated 1024/29000  1,234 lines/s  ETA 1m01s",
        "step 50/200  epoch 2  loss 3.142  12,346 tok/s  lr 1.23e-04  ETA 3m03s",
        "step 100/200  epoch 3  loss 2.500  1,000 tok/s  lr 1.00e-03  ETA 5s  BLEU 12.3",
        "validation at step 100: loss 2.346  BLEU 12.35  (best so far)",
        "validation at step 150: loss 2.400  BLEU 11.00",
        "validation at step 160: loss 2.400  BLEU 9.00; at the end probably loss 2.10 (2.00 to 2.20)",
        "validation at step 170: loss 2.400  BLEU 11.00; at the end probably loss 2.10 (2.00 to 2.20), "
        "BLEU 13.0 (12.0 to 15.0)",
    ]


def test_the_screen_shows_the_same_numbers() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, _environ={})
    with Screen(console) as screen:
        screen.note("[bold]brackets[/bold] and :smile: stay as they are")
        screen.progress(PROGRESS)
        screen.progress(WITH_BLEU)
        screen.validated(Validation(100, 2.5, 12.0, True))
    assert isinstance(console.file, io.StringIO)
    shown = ESCAPES.sub("", console.file.getvalue())
    assert "[bold]brackets[/bold] and :smile: stay as they are" in shown
    assert "validation at step 100: loss 2.500  BLEU 12.00  (best so far)" in shown
    last = shown.splitlines()[-1]
    assert last.startswith("step 100/200")
    for part in ("loss 2.500", "1,000 tok/s", "lr 1.00e-03", "ETA 5s", "BLEU 12.3"):
        assert part in last


def test_a_long_note_can_be_copied_from_the_screen_whole() -> None:
    """Rich would break it at the edge of the terminal, in the middle of the command that resumes the run."""
    console = Console(file=io.StringIO(), force_terminal=True, width=40, _environ={})
    advice = f"go on with: dragoman train --resume --out {'very/' * 20}deep"
    with Screen(console) as screen:
        screen.note(advice)
    assert isinstance(console.file, io.StringIO)
    assert advice in ESCAPES.sub("", console.file.getvalue())


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert type(watcher()) is Lines


def test_training_in_a_terminal_keeps_its_numbers_in_sight(corpus: Corpus, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    args = ["train", *corpus.flags(), "--out", str(tmp_path / "run"), *small(12, "train.log_every=1")]
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "140", "LINES": "30"}
    with subprocess.Popen([*DRAGOMAN, *args], stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end of a terminal is closed
                break
            if not block:
                break
            written += block
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(ours)
    assert process.returncode == 0
    text = written.decode()
    assert "\x1b[" in text, "a screen that is drawn again in place"
    shown = ESCAPES.sub("", text)
    numbers = r"step \d+/12\s.*epoch \d+  loss \d+\.\d{3}  [\d,]+ tok/s  lr \d\.\d{2}e-\d{2}  ETA \d+s"
    assert re.search(numbers, shown), shown
    assert re.search(r"validation at step 12: loss \d+\.\d{3}  BLEU \d+\.\d{2}  \(best so far\)", shown)
    assert f"done: {tmp_path / 'run'}" in shown
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG"), "the real command draws its curve"
