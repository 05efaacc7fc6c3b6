"""A text as sentences to translate and everything between them, which stays as it is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence

import sentencex

_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s")
_LINE_END = re.compile(r"[\r\n]+")
_log = logging.getLogger(__name__)


class Document:
    """The sentences of a text, and how to put their translations in their places."""

    def __init__(self, text: str, language: str) -> None:
        self.sentences: list[str] = []
        self._parts: list[str | int] = []  # what stays, and the numbers of sentences
        for part, is_sentence in parts(text, language):
            if is_sentence:
                self._parts.append(len(self.sentences))
                self.sentences.append(part)
            else:
                self._parts.append(part)

    def filled(self, translations: Sequence[str]) -> str:
        """The text with its sentences replaced."""
        return "".join(translations[part] if isinstance(part, int) else part for part in self._parts)


def parts(text: str, language: str) -> Iterator[tuple[str, bool]]:
    """The pieces that make up a text, and whether each is a sentence; spaces and line ends are not.

    A line end ends a sentence. What has no letter and no digit (a rule of dashes) is no sentence.
    """
    at = 0
    for match in _LINE_END.finditer(text):
        yield from _parts_of_line(text[at : match.start()], language)
        yield match.group(), False
        at = match.end()
    yield from _parts_of_line(text[at:], language)


def _parts_of_line(line: str, language: str) -> Iterator[tuple[str, bool]]:
    for segment in _segments(line, language):
        sentence = segment.strip()
        if not _WORD.search(sentence):
            yield segment, False
            continue
        start = segment.index(sentence)
        if start:
            yield segment[:start], False
        yield sentence, True
        if segment[start + len(sentence) :]:
            yield segment[start + len(sentence) :], False


def _segments(line: str, language: str) -> Iterator[str]:
    """The sentences of a line with the spaces around them; together they are the line."""
    if not line:
        return
    # The library trips over some spaces that are not ASCII's, so it sees none of those.
    plain = _SPACE.sub(" ", line)
    try:
        lengths = [len(segment) for segment in sentencex.segment(language.partition("-")[0], plain)]
    except BaseException as error:  # a panic of Rust is no Exception
        if type(error).__name__ != "PanicException":
            raise
        _log.warning("a line of %d characters could not be split into sentences", len(line))
        lengths = []
    at = 0
    for length in lengths:
        yield line[at : at + length]
        at += length
    if line[at:]:
        yield line[at:]
