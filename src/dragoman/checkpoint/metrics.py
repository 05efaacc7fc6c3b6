"""The diary of a run: metrics.jsonl, a JSON object per line, and TensorBoard's files where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.checkpoint.folder import write_text
from dragoman.errors import ModelError

METRICS = "metrics.jsonl"

Record = dict[str, Any]


class MetricsLog:
    """Writes the diary from `step` on; what was written after it, before a kill, is dropped."""

    def __init__(self, run: Path, step: int) -> None:
        self._path = run / METRICS
        kept = [record for record in read_records(run) if record["step"] <= step and "final" not in record]
        write_text(self._path, "".join(json.dumps(record) + "\n" for record in kept))
        self._board: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._board = SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)

    def write(self, record: Record) -> None:
        """Adds a line; its numbers also become points of TensorBoard's curves."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Finishes the files."""
        if self._board is not None:
            self._board.close()


def read_records(run: Path) -> list[Record]:
    """All the lines; none if nothing was written yet. A last line that a kill cut short does not count."""
    path = run / METRICS
    if not path.exists():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    return [_record(line, f"line {number} of {path}") for number, line in enumerate(lines, 1)]


def _record(line: bytes, place: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError:
        raise ModelError(f"{place} is not JSON", hint="delete the line") from None
    if not isinstance(record, dict) or "step" not in record:
        raise ModelError(f"{place} is not the record of a step", hint="delete the line")
    return record
