"""An output file that grows under another name, and that a later command can go on with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.errors import ConfigError, DragomanError

_KEEP_EVERY = 256  # calls of `write`; so many are done again after a kill, at most


class ResumableFile:
    """The file at `path`, which appears when it is complete; before, it is `.NAME.part`.

    `.NAME.part.json` beside it says how much of the part is sure, and what it was made with. An interruption leaves
    both for a command with `resume` and the same settings; a failure of the command itself leaves neither. Nor does
    anything if `settings` is None, because the input cannot be read again.
    """

    def __init__(
        self, path: Path, settings: Mapping[str, Any] | None, *, resume: bool, keep_every: int = _KEEP_EVERY
    ) -> None:
        self._path, self._settings, self._keep_every = path, settings, keep_every
        self._part, self._state = (path.with_name(f".{path.name}.{end}") for end in ("part", "part.json"))
        self.n_done, size = self._found() if resume else (0, 0)  # how often was written already
        self._file = self._part.open("r+b" if size else "wb")
        self._file.truncate(size)
        self._file.seek(size)
        self._n_kept = self.n_done

    def write(self, text: str) -> None:
        """The output of one input line, or whatever else it is that is counted."""
        self._file.write(text.encode())
        self.n_done += 1
        if self._settings is not None and self.n_done - self._n_kept >= self._keep_every:
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


def identity(path: Path) -> list[int]:
    """Size and time of a file, which change when it does."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
