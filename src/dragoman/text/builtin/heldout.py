"""Combinations of known words that training never shows, so that held-out sentences test more than memory.

A combination is one of
- an adjective and the noun it describes, before the noun or after "to be";
- a verb and the noun that is its object.

Only words with enough other partners lose one: "cold" without "soup" and "milk" would hardly ever be feminine.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from zlib import crc32

from dragoman.text.builtin.adjectives import ADJECTIVES, described
from dragoman.text.builtin.syntax import Clause, Complex, Nominal, NounPhrase, Pair, Question, Role, Sentence, clauses
from dragoman.text.builtin.verbs import GIVING_VERBS, OBJECT_VERBS

Combination = tuple[str, str, str]

_RESERVED_PER_MILLE = 80
_MIN_PARTNERS = 6


@cache
def is_reserved(combination: Combination, seed: int) -> bool:
    """True if training with this seed must not show the combination."""
    kind, word, noun = combination
    if min(_PARTNERS[kind, word], _PARTNERS[kind, noun]) < _MIN_PARTNERS:
        return False
    return crc32(f"{seed} {' '.join(combination)}".encode()) % 1000 < _RESERVED_PER_MILLE


def combinations(sentence: Sentence) -> list[Combination]:
    """Every combination the sentence shows."""
    found: list[Combination] = []
    for clause in clauses(_visible(sentence)):
        if isinstance(clause.object, NounPhrase):
            found.append(("object", clause.verb.infinitive, clause.object.noun.en))
        if clause.predicate is not None and isinstance(clause.subject, NounPhrase):
            found.append(("adjective", clause.predicate.adjective.en, clause.subject.noun.en))
        for phrase in _phrases(clause):
            found += _described(phrase)
    return found


def words(pair: tuple[str, str]) -> list[str]:
    """The words of both sides, each marked with its side, without case and punctuation."""
    src, tgt = pair
    return [f"en {word}" for word in _split(src)] + [f"de {word}" for word in _split(tgt)]


def _split(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def _visible(sentence: Sentence) -> Sentence:
    """The sentence without what a question word stands for: what, who, where."""
    if isinstance(sentence, Question):
        return replace(sentence, clause=_without(sentence.clause, sentence.asked))
    if isinstance(sentence, Complex):
        return replace(sentence, subordinate=_without(sentence.subordinate, sentence.asked))
    return sentence


def _without(clause: Clause, asked: Role | None) -> Clause:
    if asked == "place":
        return replace(clause, place=None)
    named = isinstance(clause.object, NounPhrase) and clause.object.determiner in ("which", "how many")
    return replace(clause, object=None) if asked == "object" and not named else clause


def _phrases(clause: Clause) -> list[Nominal | None]:
    standard = clause.predicate.standard if clause.predicate is not None else None
    prepositional = [part.phrase for part in (clause.cause, clause.company, clause.place) if part is not None]
    return [clause.subject, clause.recipient, clause.object, standard, *prepositional]


def _partners() -> Counter[tuple[str, str]]:
    """With how many words each word is combined, by kind of combination."""
    pairs = [("adjective", adjective.en, noun.en) for adjective in ADJECTIVES for noun in described(adjective)]
    pairs += {("object", verb.infinitive, noun.en) for verb in OBJECT_VERBS + GIVING_VERBS for noun in verb.objects}
    return Counter((kind, word) for kind, *both in pairs for word in both)


_PARTNERS = _partners()


def _described(phrase: Nominal | None) -> list[Combination]:
    """The adjectives inside a noun phrase, each with its noun."""
    if isinstance(phrase, Pair):
        return _described(phrase.first) + _described(phrase.second)
    if not isinstance(phrase, NounPhrase):
        return []
    own: list[Combination] = [] if phrase.adjective is None else [("adjective", phrase.adjective.en, phrase.noun.en)]
    return own + _described(phrase.owner)
