"""What can go wrong, as a tree.

DragomanError            carries a message (what is wrong, with the value) and a hint (what to do)
 ├─ ConfigError          a flag or a setting that cannot be used               exit code 2
 ├─ DataError            text that cannot be read as it was given              exit code 1
 ├─ ModelError           a run folder or checkpoint that cannot be used        exit code 1
 ├─ TrainingError        training that cannot go on (a non-finite loss)        exit code 1
 └─ MissingPartError     an optional dependency that is not installed          exit code 1
"""

from __future__ import annotations


class DragomanError(Exception):
    """Base of every error a user can cause; its text is one sentence, its hint another."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(DragomanError):
    """A flag or a setting that cannot be used."""

    exit_code = 2


class DataError(DragomanError):
    """Text that cannot be read as it was given."""


class ModelError(DragomanError):
    """A run folder or checkpoint that cannot be used."""


class TrainingError(DragomanError):
    """Training that cannot go on."""


class MissingPartError(DragomanError):
    """An optional dependency that is not installed."""
