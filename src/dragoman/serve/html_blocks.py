"""HTML as runs of text with inline elements in them, and everything between, which stays as it is, to the letter.

Python's own parser only tells where each tag begins; what stays is cut out of the source, so that no attribute, comment
or odd spelling changes. A parser that builds a tree would write its own HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Literal

_INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
    "var",
))  # fmt: skip
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
_INLINE_VOID = frozenset(("img", "wbr", "input"))
_OPAQUE = frozenset(("script", "style", "pre", "textarea", "svg", "math"))
_MOST_NESTED = 40  # inline elements in one another; deeper ones are no longer seen as one text

Kind = Literal["text", "open", "close", "void", "other"]


@dataclass(slots=True)
class Event:
    """A piece of the source: text, or a tag of an inline element, or anything else."""

    kind: Kind
    raw: str
    text: str = ""  # of text, with its character references resolved
    tag: str = ""


@dataclass(slots=True)
class Element:
    """An inline element within a run of text; one without text has the same start and end."""

    start: int
    end: int
    opening: str  # as it stands in the source
    closing: str
    opens: int  # the number of its opening tag among all tags and texts of the run
    closes: int  # and of its closing tag


@dataclass(slots=True)
class Run:
    """Text with its inline elements, outer ones before those inside them."""

    text: str = ""
    elements: list[Element] = field(default_factory=list)


def blocks(source: str) -> Iterator[Run | str]:
    """The runs of text of some HTML, and as strings what is between them, in order."""
    run: list[Event] = []
    for event in _events(source):
        if event.kind != "other":
            run.append(event)
            continue
        yield from _runs(run)
        yield event.raw
        run = []
    yield from _runs(run)


def _runs(events: list[Event]) -> Iterator[Run | str]:
    """One run, or, if its tags do not match, the texts between them."""
    run, opened = Run(), list[Element]()
    is_nested = True
    for number, event in enumerate(events):
        at = len(run.text)
        if event.kind == "text":
            run.text += event.text
        elif event.kind == "close":
            is_nested = is_nested and bool(opened) and opened[-1].closing == event.tag
            if not is_nested:
                break
            opened[-1].end, opened[-1].closing, opened[-1].closes = at, event.raw, number
            opened.pop()
        else:
            element = Element(at, at, event.raw, "" if event.kind == "void" else event.tag, number, number)
            run.elements.append(element)
            if event.kind == "open":
                opened.append(element)
        is_nested = is_nested and len(opened) <= _MOST_NESTED
    if is_nested and not opened:
        if run.text or run.elements:
            yield run
        return
    for event in events:
        yield Run(event.text) if event.kind == "text" else event.raw


def _events(source: str) -> Iterator[Event]:
    """The pieces of the source; all that belongs to an element that is not to be touched is one piece."""
    # What comes after the last > can be no tag, and would be searched for one again and again.
    is_over = source.rfind(">") + 1
    parser = _Parser(source)
    parser.feed(source[:is_over])
    parser.close()
    marks = [(0, "other", "", ""), *parser.marks, (is_over, "other", "", "")]
    hidden: list[str] = []  # the untouched element that we are in, once for each of its name inside it
    for (start, kind, tag, text), (end, *_) in pairwise(marks):
        raw = source[start:end]
        if not raw:
            continue
        if not hidden and kind in ("open", "hide"):
            if kind == "hide":
                hidden.append(tag)
                yield Event("void" if tag in _INLINE else "other", raw)
                continue
            yield _tag(tag, raw, kind)
        elif hidden:
            if kind in ("open", "hide") and tag == hidden[0]:
                hidden.append(tag)
            elif kind == "close" and tag == hidden[0]:
                hidden.pop()
            yield Event("void" if hidden and hidden[0] in _INLINE else "other", raw)
        elif kind == "text":
            yield Event("text", raw, text)
        else:
            yield _tag(tag, raw, kind)
    if is_over < len(source):
        rest = source[is_over:]
        yield Event("other", rest) if hidden else Event("text", rest, unescape(rest))


def _tag(tag: str, raw: str, kind: str) -> Event:
    if tag in _INLINE and kind in ("open", "close"):
        return Event("open" if kind == "open" else "close", raw, tag=tag)
    return Event("void" if tag in _INLINE_VOID else "other", raw)


class _Parser(HTMLParser):
    """Notes where each piece begins: offset, kind, tag, text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.marks: list[tuple[int, str, str, str]] = []
        self._lines = [0]
        while (end := source.find("\n", self._lines[-1])) >= 0:
            self._lines.append(end + 1)

    def _mark(self, kind: str, tag: str = "", text: str = "") -> None:
        line, column = self.getpos()
        self.marks.append((self._lines[line - 1] + column, kind, tag, text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_untouched = tag in _OPAQUE or ("translate", "no") in attrs
        self._mark("hide" if is_untouched and tag not in _VOID else "open", tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID or tag not in _INLINE:  # of others the slash means nothing: they are open
            self._mark("void", tag)
        else:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._mark("close", tag)

    def handle_data(self, data: str) -> None:
        self._mark("text", text=data)

    def handle_comment(self, data: str) -> None:
        self._mark("other")

    def handle_decl(self, decl: str) -> None:
        self._mark("other")

    def handle_pi(self, data: str) -> None:
        self._mark("other")

    def unknown_decl(self, data: str) -> None:
        self._mark("other")
