"""The diary of a run: what was written is read, what a kill spoilt is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dragoman.checkpoint.metrics import MetricsLog, read_records
from dragoman.errors import ModelError


@pytest.fixture
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # makes its import fail


def write_all(run: Path, step: int, records: list[dict[str, object]]) -> None:
    log = MetricsLog(run, step)
    for record in records:
        log.write(record)
    log.close()


RECORDS: list[dict[str, object]] = [
    {"step": 10, "loss": 5.25},
    {"step": 20, "loss": 4.5},
    {"step": 20, "valid_bleu": 1.5},
    {"step": 30, "loss": 4.0},
]


def test_records_come_back(tmp_path: Path, no_tensorboard: None) -> None:
    assert read_records(tmp_path) == []
    write_all(tmp_path, 0, RECORDS)
    assert read_records(tmp_path) == RECORDS
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 4
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_each_line_is_on_disk_at_once(tmp_path: Path, no_tensorboard: None) -> None:
    log = MetricsLog(tmp_path, 0)
    log.write(RECORDS[0])
    assert read_records(tmp_path) == RECORDS[:1]
    log.close()


def test_going_on_drops_what_came_after_the_checkpoint(tmp_path: Path, no_tensorboard: None) -> None:
    """Those updates will be made again; their lines must not stand there twice."""
    write_all(tmp_path, 0, RECORDS)
    write_all(tmp_path, 20, [{"step": 30, "loss": 4.0}])
    assert read_records(tmp_path) == RECORDS
    write_all(tmp_path, 30, [{"step": 30, "final": "checkpoint of step 30"}])
    assert read_records(tmp_path)[-1]["final"]
    write_all(tmp_path, 30, [{"step": 40, "loss": 3.0}])  # trained on after the end, which it was not
    assert read_records(tmp_path) == [*RECORDS, {"step": 40, "loss": 3.0}]
    write_all(tmp_path, 0, [])
    assert read_records(tmp_path) == []


def test_a_line_cut_short_by_a_kill_does_not_count(tmp_path: Path, no_tensorboard: None) -> None:
    write_all(tmp_path, 0, RECORDS)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "lo')
    assert read_records(tmp_path) == RECORDS
    write_all(tmp_path, 30, [{"step": 40, "loss": 3.5}])
    assert read_records(tmp_path) == [*RECORDS, {"step": 40, "loss": 3.5}]
    assert all(json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())


@pytest.mark.parametrize("line", [b"nonsense", b"", b"\xff\xfe", b"\0\0\0", b"3", b"[1]", b'{"loss": 1.0}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n')
    with pytest.raises(ModelError, match=r"line 2 of .*metrics\.jsonl is not") as caught:
        read_records(tmp_path)
    assert caught.value.hint == "delete the line"


def test_tensorboard_gets_the_numbers_where_it_is_installed(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write_all(tmp_path, 0, [*RECORDS, {"step": 30, "final": "a text is no point of a curve"}])
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss", "valid_bleu"]
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 5.25), (20, 4.5), (30, 4.0)]


def test_tensorboards_curves_are_rewound_too(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write_all(tmp_path, 0, RECORDS)
    write_all(tmp_path, 20, [{"step": 30, "loss": 3.75}])
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 5.25), (20, 4.5), (30, 3.75)]
