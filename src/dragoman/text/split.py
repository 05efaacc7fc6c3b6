"""A text that is too long for a model, in pieces that are not."""

from __future__ import annotations

import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"""(?<=[.!?…])["'”’»)\]]*\s+|[。！？]["'”’」』）]*""")
# Where a sentence may be parted if it has to be: after a clause, else after a word.
_PAUSES = (re.compile(r"[,;:]\s+|[，、；：]"), re.compile(r"\s+"))


def split_long(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces that fit, which together are the text: all of it, or else its sentences, parted where they do not fit."""
    if fits(text):
        return [text]
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]
    return [part for piece in pieces for part in _parted(piece, fits)]


def _parted(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """The sentence in halves, as often as needed, parted at the pause that is nearest to the middle."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    middle = len(sentence) // 2
    for pause in _PAUSES:
        places = [match.end() for match in pause.finditer(sentence.rstrip())]
        if places:
            middle = min(places, key=lambda place: abs(2 * place - len(sentence)))
            break
    return [*_parted(sentence[:middle], fits), *_parted(sentence[middle:], fits)]
