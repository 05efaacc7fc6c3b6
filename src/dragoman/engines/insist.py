"""Translations that must have certain terms, by nothing but a search that can be given a beginning.

Where the best translation lacks a term, each of its forms is put in at each place where a word begins: what comes
before stays, what comes after is searched anew. Of all these, the best that has the terms is taken; then the next term
is seen to. A term that no search keeps is left out.
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


def insist(best: T, terms: Sequence[Term], search: Callable[[list[str]], list[T]]) -> T:
    """The translation with as many of the terms as can be had; `search` completes beginnings."""
    wanted: list[Term] = []
    for term in terms:
        wanted.append(term)
        if all_met(wanted, best.text):
            continue
        before = [best.text[:place] for place in word_starts(best.text)]
        before[-1] += " " if before[-1] else ""  # after the last word
        for after in ("", " "):  # if every search glues something to the term, the word is ended for it
            beginnings = [text + form + after for text in before for form in term.forms]
            kept = [one for one in search(beginnings) if all_met(wanted, one.text)]
            if kept:
                best = max(kept, key=lambda one: one.score)
                break
        else:
            wanted.remove(term)
    return best
