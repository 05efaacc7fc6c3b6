"""Lengths of time on the command line: 90s, 30m, 1h30m."""

from __future__ import annotations

import re

import click

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def seconds(text: str) -> float:
    """The seconds in "1h30m"; a bare number is refused, because nobody can tell its unit."""
    found = _PARTS.fullmatch(text)
    if not text or found is None:
        raise click.BadParameter(f'"{text}" is not a length of time; write 90s, 30m or 1h30m')
    hours, minutes, rest = (float(number or 0) for number in found.groups())
    return 3600 * hours + 60 * minutes + rest


def duration(seconds: float) -> str:
    """A length of time for people: 42s, 3m05s, 2h07m."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
