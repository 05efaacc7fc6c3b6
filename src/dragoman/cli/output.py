"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError, DataError


def check_writable(output: Path) -> None:
    """Raises if the output has no place, before any time is spent on it."""
    if output.is_dir():
        raise DataError(f"{output} is a folder", hint="name a file inside it")
    if not output.parent.is_dir():
        raise DataError(f"there is no folder {output.parent}", hint="make it, or write elsewhere")


def ending_of(output: Path, endings: tuple[str, ...]) -> str:
    """The ending of a file name, which says what to write; ConfigError if it is none of these."""
    ending = output.suffix.removeprefix(".").lower()
    if ending not in endings:
        raise ConfigError(f"{output} ends in none of .{', .'.join(endings)}", hint="the ending says what to write")
    return ending
