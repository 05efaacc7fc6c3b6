"""HTML whose text is translated and whose tags stay.

A sentence is translated as a whole, without the inline tags in it, because half sentences translate badly. Then each
inline element is given a place in the translation: its own text is translated too, and where the words of that occur,
there the element goes; if they do not occur, it goes where it stood, in proportion.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.serve.documents import parts
from dragoman.serve.html_blocks import Element, Run, blocks

_SPACES = re.compile(r"[\r\n\t\f]")
_WORD = re.compile(r"\S+")
_LETTER = re.compile(r"\w")
_ENOUGH = 0.5  # how alike words have to be on average, for an element to be put where they are
_MOST_INSIDE = 30  # elements of a sentence; where there are more, the text between any two tags is translated alone
_MOST_COMPARED = 12  # words of an element that are looked for


@dataclass(slots=True)
class _Sentence:
    """A sentence of a run, the elements inside it, and the numbers of what is to be translated for it."""

    start: int
    end: int
    number: int = 0
    inner: list[tuple[Element, int | None]] = field(default_factory=list)  # the number of its text, if it has any


class Markup:
    """The texts of some HTML that are to be translated, and how to put the translations in their places."""

    def __init__(self, source: str, language: str) -> None:
        self.sentences: list[str] = []
        self._fillers: list[Callable[[Sequence[str]], str]] = []
        for block in blocks(source):
            if isinstance(block, str):
                self._fillers.append(lambda translations, raw=block: raw)  # type: ignore[misc]
            else:
                self._add(block, language)

    def filled(self, translations: Sequence[str]) -> str:
        """The HTML with its texts replaced."""
        return "".join(fill(translations) for fill in self._fillers)

    def _add(self, run: Run, language: str) -> None:
        text = _SPACES.sub(" ", run.text)
        bounds, at = list[tuple[int, int]](), 0
        for part, is_sentence in parts(text, language):
            if is_sentence:
                bounds.append((at, at + len(part)))
            at += len(part)
        sentences = [_Sentence(*bound) for bound in _merged(bounds, run.elements)]
        owners = [_inside(element, sentences) for element in run.elements]
        if max(Counter(id(owner) for owner in owners if owner).values(), default=0) > _MOST_INSIDE:
            sentences = [_Sentence(*bound) for bound in _cut(text, bounds, run.elements)]
            owners = [_inside(element, sentences) for element in run.elements]
        for sentence in sentences:
            sentence.number = self._wanted(text[sentence.start : sentence.end])
        outer = []
        for element, owner in zip(run.elements, owners, strict=True):
            words = text[element.start : element.end]
            if owner is None:
                outer.append(element)
            else:
                owner.inner.append((element, self._wanted(words) if _LETTER.search(words) else None))
        self._fillers.append(lambda translations: _written(run, sentences, outer, translations))

    def _wanted(self, text: str) -> int:
        self.sentences.append(" ".join(text.split()))
        return len(self.sentences) - 1


def _merged(bounds: list[tuple[int, int]], elements: list[Element]) -> list[tuple[int, int]]:
    """Sentences such that each element is inside one, or has whole ones inside it."""
    starts, ends = ([bound[side] for bound in bounds] for side in (0, 1))
    joins: set[int] = set()  # sentences that go together with the one before
    for element in elements:
        first, last = bisect_right(ends, element.start), bisect_left(starts, element.end) - 1
        if first < last and (starts[first] < element.start or element.end < ends[last]):
            joins |= set(range(first + 1, last + 1)) if last - first < _MOST_INSIDE else set()
    merged: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(bounds):
        merged.append((merged.pop()[0], end) if i in joins else (start, end))
    # One that still crosses the end of a sentence has too many in it: all are cut where it begins and ends.
    return merged


def _cut(text: str, bounds: list[tuple[int, int]], elements: list[Element]) -> Iterator[tuple[int, int]]:
    """The sentences in pieces, parted by every tag."""
    places = sorted({place for element in elements for place in (element.start, element.end)})
    for start, end in bounds:
        inside = places[bisect_right(places, start) : bisect_left(places, end)]
        for a, b in zip([start, *inside], [*inside, end], strict=True):
            piece = text[a:b]
            if _LETTER.search(piece):
                a += len(piece) - len(piece.lstrip())
                yield a, a + len(piece.strip())


def _inside(element: Element, sentences: list[_Sentence]) -> _Sentence | None:
    """The sentence that an element is a part of, but not the whole of."""
    i = bisect_right(sentences, element.start, key=lambda one: one.start) - 1
    if i < 0:
        return None
    one = sentences[i]
    if element.start == element.end:
        return one if one.start < element.start < one.end else None
    is_part = element.end <= one.end and (one.start, one.end) != (element.start, element.end)
    return one if is_part else None


def _written(run: Run, sentences: list[_Sentence], outer: list[Element], translations: Sequence[str]) -> str:
    """The run with its sentences translated and all its tags."""
    tags = [(element.opens, element.start, element.opening) for element in outer]
    tags += [(element.closes, element.end, element.closing) for element in outer if element.closing]
    tags.sort()
    out, at, k = [], 0, 0

    def up_to(end: int) -> None:
        nonlocal at, k
        while k < len(tags) and tags[k][1] <= end:
            out.append(html.escape(run.text[at : tags[k][1]], quote=False) + tags[k][2])
            at = tags[k][1]
            k += 1
        out.append(html.escape(run.text[at:end], quote=False))
        at = end

    for sentence in sentences:
        up_to(sentence.start)
        out.append(_placed(run.text, sentence, translations))
        at = sentence.end
    up_to(len(run.text))
    return "".join(out)


@dataclass(slots=True)
class _Place:
    """An element in the translation, by characters, and those inside it."""

    start: int
    end: int
    element: Element
    inside: list[_Place] = field(default_factory=list)


def _placed(source: str, sentence: _Sentence, translations: Sequence[str]) -> str:
    """The translation of a sentence with the elements that are inside it."""
    text = translations[sentence.number]
    words = [match.span() for match in _WORD.finditer(text)]
    root = _Place(0, len(text), Element(sentence.start, sentence.end, "", "", -1, -1))
    for element, like in _by_urgency(sentence, text, translations):
        parent = root
        while inner := next((one for one in parent.inside if _encloses(one.element, element)), None):
            parent = inner
        place = _Spot(sentence, element, text, words).found(like, parent)
        parent.inside.append(_Place(*_without_marks(text, *place, source[element.start : element.end]), element))
    return _rendered(text, root)


def _by_urgency(sentence: _Sentence, text: str, translations: Sequence[str]) -> list[tuple[Element, list[str]]]:
    """The elements and their words: outer before inner ones, those whose words occur before the others."""
    ranked = []
    for element, number in sentence.inner:
        like = [] if number is None else translations[number].split()[:_MOST_COMPARED]
        depth = sum(_encloses(other, element) for other, _ in sentence.inner)
        occurs = any(_alike(word, one) >= _ENOUGH for word in text.split() for one in like)
        ranked.append((depth, not occurs, element.opens, element, like))
    return [(element, like) for *_, element, like in sorted(ranked, key=lambda one: one[:3])]


def _encloses(outer: Element, inner: Element) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end and outer.end > outer.start


@dataclass(slots=True)
class _Spot:
    """Looks for the place of an element in the translation of its sentence."""

    sentence: _Sentence
    element: Element
    text: str
    words: list[tuple[int, int]]

    def found(self, like: list[str], parent: _Place) -> tuple[int, int]:
        """From which character to which: inside its parent, outside its siblings, where the words are alike."""
        free = [
            i for i, (start, end) in enumerate(self.words)
            if parent.start <= start and end <= parent.end
            and not any(one.start < end and start < one.end for one in parent.inside)
        ]  # fmt: skip
        if not free:
            after = max((one.end for one in parent.inside), default=parent.end)
            return after, after
        length = self.sentence.end - self.sentence.start
        centre = ((self.element.start + self.element.end) / 2 - self.sentence.start) / length
        if self.element.start == self.element.end:
            start = min((self.words[i][0] for i in free), key=lambda at: abs(at / len(self.text) - centre))
            return start, start
        n_words = len(like) or max(1, round(len(self.words) * (self.element.end - self.element.start) / length))
        first, last = max(self._windows(free, n_words), key=lambda one: self._score(one, n_words, like, centre))
        return self.words[first][0], self.words[last][1]

    def _windows(self, free: list[int], n_words: int) -> Iterator[tuple[int, int]]:
        """The first and last of words that are next to one another and free."""
        for k, first in enumerate(free):
            yield first, first
            for n in (n_words - 1, n_words, n_words + 1):
                if 1 < n <= len(free) - k and free[k + n - 1] == first + n - 1:
                    yield first, first + n - 1

    def _score(self, window: tuple[int, int], n_words: int, like: list[str], centre: float) -> float:
        """How alike the words are, and how near their place is to that in the source."""
        first, last = window
        middle = (self.words[first][0] + self.words[last][1]) / 2 / len(self.text)
        hits = [
            max((_alike(self.text[start:end], word) for word in like), default=0.0)
            for start, end in self.words[first : min(last, first + _MOST_COMPARED) + 1]
        ]
        hit = sum(hits) / max(len(hits), min(n_words, _MOST_COMPARED))
        # A word too few or too many is worth less than nothing only where no words are alike.
        return (hit if hit >= _ENOUGH else -0.01 * abs(last - first + 1 - n_words)) - 0.2 * abs(middle - centre)


def _without_marks(text: str, start: int, end: int, source: str) -> tuple[int, int]:
    """The place without punctuation around it, unless the source has some: the stop after a bold word is not bold."""
    source = source.strip()
    while end - start > 1 and source and source[-1].isalnum() and not text[end - 1].isalnum():
        end -= 1
    while end - start > 1 and source and source[0].isalnum() and not text[start].isalnum():
        start += 1
    return start, end


def _alike(a: str, b: str) -> float:
    """How much of two words is the same from the beginning, where stems are: 1 for all, 0 for nothing."""
    a, b = (word.strip(".,;:!?…\"'()»«“”„").casefold() for word in (a, b))
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n / max(len(a), len(b), 1)


def _rendered(text: str, place: _Place) -> str:
    out, at = [], place.start
    for one in sorted(place.inside, key=lambda one: (one.start, one.end, one.element.opens)):
        start = max(at, one.start)
        out.append(html.escape(text[at:start], quote=False))
        out.append(one.element.opening + _rendered(text, one) + one.element.closing)
        at = max(start, one.end)
    out.append(html.escape(text[at : place.end], quote=False))
    return "".join(out)
