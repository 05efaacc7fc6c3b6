"""Translations that must have certain terms, by nothing but a search that can be given a beginning.

Where the best translation lacks a term, one of its forms takes the place of the words that stand for it: what came
after them stays, or is searched anew. If nothing comes of that, each form is put in at each place where a word begins.
Of what has the terms the best is taken; then the next term is seen to. A term that no search keeps is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from dragoman.text.glossary import Term, all_met, word_starts


class Scored(Protocol):
    """A translation, as far as it matters here."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...


T = TypeVar("T", bound=Scored)
Search = Callable[[list[str]], list[T]]
Spans = Sequence[tuple[int, int]]  # from one character to another


def insist(best: T, terms: Sequence[Term], search: Search[T], places: Callable[[str, Term], Spans]) -> T:
    """The translation with as many of the terms as can be had.

    `search` completes beginnings; `places` tells which characters of a translation may stand for a term.
    """
    wanted: list[Term] = []
    for term in terms:
        wanted.append(term)
        if all_met(wanted, best.text):
            continue
        found = _instead(best.text, places(best.text, term), wanted, search) or _anywhere(best.text, wanted, search)
        if found is None:
            wanted.remove(term)
        else:
            best = found
    return best


def _instead(text: str, places: Spans, wanted: list[Term], search: Search[T]) -> T | None:
    """The best with a form of the last term in place of other words, which are then fewer than before."""
    found: list[T] = []
    for start, end in places:
        before, old, after = text[:start], text[start:end], text[end:]
        forms = [form[0].upper() + form[1:] if not before and old[0].isupper() else form for form in wanted[-1].forms]
        completed = search([before + form + rest for form in forms for rest in ("", after)])
        found += [one for one in completed if one.text.count(old) < text.count(old)]
    return _best(found, wanted)


def _anywhere(text: str, wanted: list[Term], search: Search[T]) -> T | None:
    """The best with a form of the last term where a word begins, or at the end."""
    before = [text[:start] for start in word_starts(text)]
    before[-1] += " " if before[-1] else ""  # after the last word
    for after in ("", " "):  # if every search glues something to the term, the word is ended for it
        found = _best(search([begun + form + after for begun in before for form in wanted[-1].forms]), wanted)
        if found is not None:
            return found
    return None


def _best(found: list[T], wanted: list[Term]) -> T | None:
    kept = [one for one in found if all_met(wanted, one.text)]
    return max(kept, key=lambda one: one.score, default=None)
