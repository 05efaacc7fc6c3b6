"""The teachers' time, by a clock that is set by hand, and what becomes of it when a command is stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dragoman.distill
from dragoman.cli.progress import Lines
from dragoman.config import Config, make_config
from dragoman.distill import distill
from dragoman.errors import ConfigError, DataError
from dragoman.translator import Translation

N_LINES = 3000


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Teacher:
    """Shouts; takes 10 s for each go, and does not get beyond the `last` one."""

    def __init__(self, clock: Clock, last: int | None) -> None:
        self._clock, self._left = clock, last

    def translate(self, lines: Sequence[str], *, beam: int | None) -> list[Translation]:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left = None if self._left is None else self._left - 1
        self._clock.now += 10
        return [
            Translation(text=line.upper(), score=0.0, log_prob=0.0, tokens=(), is_cut=line == "line 7")
            for line in lines
        ]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def hire(monkeypatch: pytest.MonkeyPatch, clock: Clock, last: int | None = None) -> None:
    monkeypatch.setattr(dragoman.distill, "load", lambda path, **options: Teacher(clock, last))


def a_config(folder: Path, text: dict[str, Any] | None = None, **train: Any) -> Config:
    """With a text of 3000 lines."""
    (folder / "src").write_text("".join(f"line {i}\n" for i in range(N_LINES)), encoding="utf-8")
    (folder / "teacher").mkdir(exist_ok=True)
    (folder / "teacher" / "model.safetensors").write_bytes(b"")
    files = {"src": str(folder / "src"), "teachers": (str(folder / "teacher"),), **(text or {})}
    return make_config({"text": files, "train": train})


def pairs(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "distilled" / "pairs.jsonl").read_text().splitlines()]


def test_each_line_with_its_translation_but_not_with_half_of_one(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hire(monkeypatch, clock)
    assert distill(a_config(tmp_path), tmp_path, Lines(), clock) == 0
    expected = [{"src": f"line {i}", "tgt": f"LINE {i}"} for i in range(N_LINES) if i != 7]
    assert pairs(tmp_path) == expected
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
        "translated 1024/3000  102 lines/s  ETA 19s",
        "translated 2048/3000  102 lines/s  ETA 9s",
        "translated 3000/3000  100 lines/s  ETA 0s",
        "warning: 1 translations were cut at the limit of length and are not trained on",
    ]


def test_a_teacher_that_cannot_translate(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    hire(monkeypatch, clock)
    config = a_config(tmp_path)
    (tmp_path / "src").write_text("line 7\n" * 3)
    with pytest.raises(DataError, match=r"all 3 translations by .*teacher were cut at the limit of length"):
        distill(config, tmp_path, Lines(), clock)
    assert [path.name for path in (tmp_path / "distilled").iterdir()] == ["state.json"]


def test_lines_that_cannot_be_used_are_set_aside_with_a_report(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hire(monkeypatch, clock)
    config = a_config(tmp_path)
    (tmp_path / "src").write_bytes(b"one\n\ntw\xf6\n" + b"fine\n" * 20)
    distill(config, tmp_path, Lines(), clock)
    assert [pair["src"] for pair in pairs(tmp_path)] == ["one", *["fine"] * 20]
    err = capsys.readouterr().err
    assert f"1 pair set aside: empty side ({tmp_path / 'src'} line 2)" in err
    assert f"1 pair set aside: invalid UTF-8 ({tmp_path / 'src'} line 3)" in err


def test_the_time_of_a_command_that_was_stopped_counts_until_a_checkpoint_has_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = a_config(tmp_path)
    hire(monkeypatch, clock, last=2)
    with pytest.raises(KeyboardInterrupt):
        distill(config, tmp_path, Lines(), clock)
    hire(monkeypatch, clock)
    assert distill(config, tmp_path, Lines(), clock) == 20, "of the first; the second is still under way"
    assert len(pairs(tmp_path)) == N_LINES - 1
    assert distill(config, tmp_path, Lines(), clock) == 30, "of the first two"
    assert clock.now == 1030, "there was nothing to do"
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    assert distill(config, tmp_path, Lines(), clock) == 0, "it is in the checkpoint"


def test_a_teacher_too_slow_for_the_budget_is_found_out_early(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3000 lines take 29.3 s at the pace of the first 1024."""
    hire(monkeypatch, clock)
    with pytest.raises(ConfigError, match="would take about 29 s of the 58 s, more than half") as caught:
        distill(a_config(tmp_path, budget_s=58.0), tmp_path, Lines(), clock)
    assert "--beam" in (caught.value.hint or "")
    assert clock.now == 1010, "after one go"
    distill(a_config(tmp_path, budget_s=59.0), tmp_path, Lines(), clock)
    assert len(pairs(tmp_path)) == N_LINES - 1


def test_what_is_half_done_is_not_given_up_for_a_budget(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hire(monkeypatch, clock, last=1)
    with pytest.raises(KeyboardInterrupt):
        distill(a_config(tmp_path), tmp_path, Lines(), clock)
    hire(monkeypatch, clock)
    distill(make_config({"text": text_of(tmp_path), "train": {"budget_s": 10.0}}), tmp_path, Lines(), clock)
    assert len(pairs(tmp_path)) == N_LINES - 1


def text_of(folder: Path) -> dict[str, Any]:
    return {"src": str(folder / "src"), "teachers": (str(folder / "teacher"),)}


def test_a_text_that_changed_meanwhile_is_noticed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = a_config(tmp_path)
    hire(monkeypatch, clock, last=1)
    with pytest.raises(KeyboardInterrupt):
        distill(config, tmp_path, Lines(), clock)
    with (tmp_path / "src").open("a") as file:
        file.write("one more\n")
    with pytest.raises(ConfigError, match="was begun with another text"):
        distill(config, tmp_path, Lines(), clock)


def test_a_mistake_in_the_validation_text_is_found_before_the_teacher_works(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hire(monkeypatch, clock)
    config = a_config(tmp_path, {"valid_src": str(tmp_path / "src"), "valid_tgt": str(tmp_path / "none")})
    with pytest.raises(DataError, match="none does not exist"):
        distill(config, tmp_path, Lines(), clock)
    assert clock.now == 1000
