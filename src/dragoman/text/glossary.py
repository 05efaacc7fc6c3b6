"""Terms whose translation is settled: which occur in a source, and whether a target has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError
from dragoman.text.lines import read_lines

# Addresses of pages and people, tags, placeholders of programs, numbers.
_UNTOUCHED = re.compile(
    r"""https?://\S+ | [\w.+-]+@[\w-]+\.[\w.-]+ | </?\w[^<>]*>
      | \{\{.*?\}\} | \$?\{\w*\} | %\(\w+\)[sdf] | %\d*\$?[sdf]\b | \d(?:[\d.,:/]*\d)?""",
    re.VERBOSE,
)
_WORD = re.compile(r"\w(?:\S*\w)?")
_LIKE = 0.5  # of the change of the word that changes most, for a word beside it to go with it


@dataclass(frozen=True, slots=True)
class Term:
    """A source term, and the forms of which one must appear in the target, the preferred one first."""

    src: str
    forms: tuple[str, ...]

    def is_in(self, src: str) -> bool:
        """Whether a source has the term, as whole words; whether letters are capital does not matter."""
        return _has(src, self.src)

    def left_out(self, src: str) -> str:
        """A source without the term."""
        return " ".join(_pattern(self.src).sub(" ", src).split())

    def met(self, tgt: str) -> str | None:
        """The form that a target has; None if it has none."""
        return next((form for form in self.forms if _has(tgt, form)), None)


class Glossary:
    """Terms, the longer ones first."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = sorted(terms, key=lambda term: -len(term.src))

    @classmethod
    def read(cls, path: str | Path) -> Glossary:
        """From a file with a term on each line: the source, then the forms of the target, between tabs."""
        terms = []
        for number, line in enumerate(read_lines(path), 1):
            columns = [column.strip() for column in line.split("\t")]
            if not any(columns) or line.startswith("#"):
                continue
            if len(columns) < 2 or not all(columns):
                raise DataError(
                    f"line {number} of {path} has no source and target between tabs",
                    hint="write for example: dog<TAB>Hund<TAB>Hunde<TAB>Hunden",
                )
            terms.append(Term(columns[0], tuple(columns[1:])))
        if not terms:
            raise DataError(f"{path} has no terms", hint="write one on each line: dog<TAB>Hund")
        return cls(terms)

    def terms_in(self, src: str) -> list[Term]:
        """The terms that a source has; a term inside a longer one that was found does not count."""
        found: list[Term] = []
        for term in self.terms:
            if term.is_in(src) and not any(_has(longer.src, term.src) for longer in found):
                found.append(term)
        return found


def untouched(src: str) -> list[Term]:
    """What a source has that is not to be translated, as terms that stand for themselves."""
    found = dict.fromkeys(match.group().rstrip(".,:;!?") for match in _UNTOUCHED.finditer(src))
    return [Term(text, (text,)) for text in found]


def _has(text: str, words: str) -> bool:
    """Whether the words stand in the text, not as parts of others."""
    return _pattern(words).search(text) is not None


def _pattern(words: str) -> re.Pattern[str]:
    # Where a term begins or ends with a letter, none may stand beside it.
    before = r"(?<!\w)" if re.match(r"\w", words) else ""
    after = r"(?!\w)" if re.search(r"\w$", words) else ""
    return re.compile(before + re.escape(words) + after, re.IGNORECASE)


def word_starts(text: str) -> list[int]:
    """The places where a word begins, and the end of the text."""
    return [*(match.start() for match in re.finditer(r"(?<!\S)\S", text)), len(text)]


def most_changed_words(text: str, changes: Sequence[tuple[int, float]]) -> list[tuple[int, int]]:
    """From which character to which a word stands that changes most, or its like beside it; at last all of them.

    `changes` are where each bit of the text ends, and how much it changes.
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    sums, start = [0.0] * len(spans), 0
    for end, change in changes:
        for i, (first, last) in enumerate(spans):
            if first < end and start < last:
                sums[i] += change
        start = end
    if max(sums, default=0.0) <= 0:
        return []
    most = first = last = sums.index(max(sums))
    while first > 0 and sums[first - 1] >= _LIKE * sums[most]:
        first -= 1
    while last + 1 < len(spans) and sums[last + 1] >= _LIKE * sums[most]:
        last += 1
    return [*dict.fromkeys([*spans[first : last + 1], (spans[first][0], spans[last][1])])]


def all_met(terms: Sequence[Term], tgt: str) -> bool:
    """Whether a target has all terms."""
    return all(term.met(tgt) is not None for term in terms)
