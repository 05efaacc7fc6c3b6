"""A file that is translated in several goes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from small_run import DRAGOMAN, ENVIRONMENT, Corpus

from dragoman.checkpoint.resumable import ResumableFile
from dragoman.cli.counted import Counted
from dragoman.cli.main import run as run_command
from dragoman.errors import ConfigError, DataError

SETTINGS = {"beam": 4}


def interrupted(path: Path, n_lines: int) -> None:
    with pytest.raises(KeyboardInterrupt), ResumableFile(path, SETTINGS, resume=False) as out:  # noqa: PT012
        for i in range(n_lines):
            out.write(f"line {i}\n")
        raise KeyboardInterrupt


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with ResumableFile(path, SETTINGS, resume=False) as out:
        out.write("ä\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert names(tmp_path) == ["out"]


def test_going_on_after_an_interruption(tmp_path: Path) -> None:
    path = tmp_path / "out"
    interrupted(path, 3)
    assert names(tmp_path) == [".out.part", ".out.part.json"]
    with (tmp_path / ".out.part").open("ab") as part:
        part.write(b"half a li")  # of which the note beside it does not know
    with ResumableFile(path, SETTINGS, resume=True) as out:
        assert out.n_done == 3
        out.write("line 3\n")
    assert path.read_text() == "line 0\nline 1\nline 2\nline 3\n"
    assert names(tmp_path) == ["out"]


def test_starting_anew_all_the_same(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 3)
    with ResumableFile(tmp_path / "out", SETTINGS, resume=False) as out:
        assert out.n_done == 0
    assert (tmp_path / "out").read_bytes() == b""


def test_other_settings_cannot_go_on(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 3)
    with pytest.raises(ConfigError, match="begun with another beam: 4, not 5"):
        ResumableFile(tmp_path / "out", {"beam": 5}, resume=True)
    assert names(tmp_path) == [".out.part", ".out.part.json"], "nothing is lost"


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError), ResumableFile(tmp_path / "out", SETTINGS, resume=False) as out:  # noqa: PT012
        out.write("line\n")
        raise DataError("bad", hint="good")
    assert names(tmp_path) == []


def test_where_nothing_can_be_resumed_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ResumableFile(tmp_path / "out", None, resume=False):
        raise KeyboardInterrupt
    assert names(tmp_path) == []


def test_progress_has_a_rate_and_an_eta(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    counted = Counted(1000, 100, clock=lambda: now)
    now = 29.0
    counted.show(200)
    assert capsys.readouterr().err == ""
    now = 40.0
    counted.show(300)
    assert capsys.readouterr().err == "300 of 1,000 lines, 5 a second, ETA 2m20s\n"


@pytest.mark.slow
def test_killed_half_way_and_resumed(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    """A real process, killed with no chance to say goodbye."""
    source, output, part = tmp_path / "in", tmp_path / "out", tmp_path / ".out.part.json"
    source.write_bytes(corpus.src.read_bytes() * 40)
    args = ["translate", "--model", str(run), "--threads", "1", "--beam", "4", str(source), "--output", str(output)]
    with subprocess.Popen([*DRAGOMAN, *args], stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        while not part.exists():
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
    assert not output.exists()
    assert run_command([*args, "--resume"]) == 0
    resumed = output.read_bytes()
    assert run_command([*args]) == 0
    assert resumed == output.read_bytes()
    assert resumed.count(b"\n") == source.read_bytes().count(b"\n")
    assert names(tmp_path) == ["in", "out"]
