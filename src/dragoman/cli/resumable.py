"""An output file that grows under another name, and that a later command can go on with."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.cli.duration import duration
from dragoman.errors import ConfigError, DragomanError

_KEEP_EVERY = 256  # lines; so many are done again after a kill, at most


class ResumableFile:
    """The file at `path`, which appears when it is complete; before, it is `.NAME.part`.

    `.NAME.part.json` beside it says how much of the part is sure, and what it was made with. An interruption leaves
    both for a command with `resume` and the same settings; a failure of the command itself leaves neither. Nor does
    anything if `settings` is None, because the input cannot be read again.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any] | None, *, resume: bool) -> None:
        self._path, self._settings = path, settings
        self._part, self._state = (path.with_name(f".{path.name}.{end}") for end in ("part", "part.json"))
        self.n_done, size = self._found() if resume else (0, 0)  # input lines whose output is there already
        self._file = self._part.open("r+b" if size else "wb")
        self._file.truncate(size)
        self._file.seek(size)
        self._n_kept = self.n_done

    def write(self, text: str) -> None:
        """The output of one input line."""
        self._file.write(text.encode())
        self.n_done += 1
        if self._settings is not None and self.n_done - self._n_kept >= _KEEP_EVERY:
            self._keep()

    def __enter__(self) -> ResumableFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._file.close()
            self._part.replace(self._path)
            self._state.unlink(missing_ok=True)
        elif isinstance(error, DragomanError) or self._settings is None:
            self._file.close()
            self._part.unlink(missing_ok=True)
            self._state.unlink(missing_ok=True)
        else:
            self._keep()
            self._file.close()

    def _keep(self) -> None:
        """Notes how far it is, once that is on disk."""
        from dragoman.checkpoint.folder import write_text

        self._file.flush()
        os.fsync(self._file.fileno())
        state = {"lines": self.n_done, "bytes": self._file.tell(), "settings": self._settings}
        write_text(self._state, json.dumps(state))
        self._n_kept = self.n_done

    def _found(self) -> tuple[int, int]:
        """How many lines and bytes are there of an earlier command; none if there was none."""
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            n_lines, size, settings = state["lines"], state["bytes"], state["settings"]
            is_whole = self._part.stat().st_size >= size
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        now = json.loads(json.dumps(self._settings))
        differing = sorted(name for name in now.keys() | settings.keys() if now.get(name) != settings.get(name))
        if differing:
            raise ConfigError(
                f"{self._part} was begun with another {differing[0]}: {settings.get(differing[0])!r}, not "
                f"{now.get(differing[0])!r}",
                hint="give the same as before, or leave out --resume to start anew",
            )
        return (n_lines, size) if is_whole else (0, 0)


class Counted:
    """Says on stderr how far a file is, now and then: often at a terminal, else every half minute."""

    def __init__(self, total: int | None, n_before: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._n_before, self._clock = total, n_before, clock
        self._began = self._said = clock()
        self._is_terminal = sys.stderr.isatty()

    def show(self, n_done: int) -> None:
        """Call it after each line."""
        now = self._clock()
        if now - self._said < (0.5 if self._is_terminal else 30):
            return
        self._said = now
        rate = (n_done - self._n_before) / (now - self._began)
        text = f"{n_done:,} lines, {rate:,.0f} a second"
        if self._total is not None:
            left_s = (self._total - n_done) / rate
            text = f"{n_done:,} of {self._total:,} lines, {rate:,.0f} a second, ETA {duration(left_s)}"
        end = "\n" if not self._is_terminal or n_done == self._total else "\x1b[K\r"
        print(text, file=sys.stderr, end=end, flush=True)

    def close(self) -> None:
        """Leaves a clean line at a terminal."""
        if self._is_terminal:
            print(end="\x1b[K", file=sys.stderr, flush=True)
