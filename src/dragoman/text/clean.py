"""What is wrong with a line of text, and the account of it given to the user."""

from __future__ import annotations

import re
from collections import Counter
from enum import Enum

_N_EXAMPLES = 5  # enough to find the cause, few enough to print

# Characters that other tools (and str.splitlines) take for the end of a line; we only split at "\n".
_ODD_BREAK = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class Kind(Enum):
    """One way a line can be unusual; the value says it in words."""

    INVALID_UTF8 = "invalid UTF-8"
    NUL = "NUL character"
    EMPTY = "empty side"
    TOO_LONG = "longer than text.max_len_chars"
    BOM = "began with a byte order mark, removed"
    CRLF = "ended in CRLF, carriage return removed"
    ODD_BREAK = "held an unusual line break, kept as it is"


_SETS_ASIDE = frozenset({Kind.INVALID_UTF8, Kind.NUL, Kind.EMPTY, Kind.TOO_LONG})


class Report:
    """Counts of what was read, kept and set aside, with the first few places of each kind."""

    def __init__(self) -> None:
        self.n_read = 0
        self.n_kept = 0
        self.counts: Counter[Kind] = Counter()
        self._places: dict[Kind, list[str]] = {kind: [] for kind in Kind}

    def note(self, kind: Kind, file: str, line: int) -> None:
        """Counts one line (or one pair, if the kind sets pairs aside)."""
        self.counts[kind] += 1
        if len(self._places[kind]) < _N_EXAMPLES:
            self._places[kind].append(f"{file} line {line}")

    def summary(self) -> list[str]:
        """One sentence per kind that occurred, such as `3 pairs set aside: empty side (a.de line 12, …)`."""
        sentences = []
        for kind in Kind:
            n = self.counts[kind]
            if n == 0:
                continue
            places = ", ".join(self._places[kind]) + (", …" if n > _N_EXAMPLES else "")
            if kind in _SETS_ASIDE:
                sentences.append(f"{n} {'pair' if n == 1 else 'pairs'} set aside: {kind.value} ({places})")
            else:
                sentences.append(f"{n} {'line' if n == 1 else 'lines'} {kind.value} ({places})")
        return sentences


def find_defect(text: str | None, max_len_chars: int) -> Kind | None:
    """The reason this side cannot be trained on, or None; a text of None was not valid UTF-8."""
    if text is None:
        return Kind.INVALID_UTF8
    if "\0" in text:
        return Kind.NUL
    if not text or text.isspace():
        return Kind.EMPTY
    if len(text) > max_len_chars:
        return Kind.TOO_LONG
    return None


def has_odd_break(text: str) -> bool:
    """Whether other tools might see more than one line in this line."""
    return _ODD_BREAK.search(text) is not None
