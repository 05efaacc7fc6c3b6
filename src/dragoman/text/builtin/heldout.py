"""Combinations of known words that training never shows, so that held-out sentences test more than memory.

A combination is one of
- an adjective and the noun it describes, before the noun or after "to be";
- a verb and the noun that is its object;
- a verb and a word order other than the plain statement: fronted, question, subordinate, relative, infinitive.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

from .syntax import Clause, Complex, Nominal, NounPhrase, Pair, Question, Sentence, clauses

Combination = tuple[str, str, str]

_RESERVED_PER_MILLE = {"adjective": 70, "object": 70, "order": 50}


@cache
def is_reserved(combination: Combination, seed: int) -> bool:
    """True if training with this seed must not show the combination."""
    draw = crc32(f"{seed} {' '.join(combination)}".encode()) % 1000
    return draw < _RESERVED_PER_MILLE[combination[0]]


def combinations(sentence: Sentence) -> list[Combination]:
    """Every combination the sentence shows."""
    found: list[Combination] = []
    asked = _asked_clause(sentence)
    for order, clause in clauses(sentence):
        verb = clause.verb.infinitive
        if order != "statement":
            found.append(("order", order, verb))
        if isinstance(clause.object, NounPhrase) and not (clause is asked and _is_unseen(clause.object)):
            found.append(("object", verb, clause.object.noun.en))
        if clause.predicate is not None and isinstance(clause.subject, NounPhrase):
            found.append(("adjective", clause.predicate.adjective.en, clause.subject.noun.en))
        for phrase in _phrases(clause):
            found += _described(phrase)
    return found


def _asked_clause(sentence: Sentence) -> Clause | None:
    """The clause whose object a question word replaces."""
    if isinstance(sentence, Question) and sentence.asked == "object":
        return sentence.clause
    if isinstance(sentence, Complex) and sentence.asked == "object":
        return sentence.subordinate
    return None


def _is_unseen(phrase: NounPhrase) -> bool:
    return phrase.determiner not in ("which", "how many")


def _phrases(clause: Clause) -> list[Nominal | None]:
    standard = clause.predicate.standard if clause.predicate is not None else None
    prepositional = [part.phrase for part in (clause.cause, clause.company, clause.place) if part is not None]
    return [clause.subject, clause.recipient, clause.object, standard, *prepositional]


def _described(phrase: Nominal | None) -> list[Combination]:
    """The adjectives inside a noun phrase, each with its noun."""
    if isinstance(phrase, Pair):
        return _described(phrase.first) + _described(phrase.second)
    if not isinstance(phrase, NounPhrase):
        return []
    own: list[Combination] = [] if phrase.adjective is None else [("adjective", phrase.adjective.en, phrase.noun.en)]
    return own + _described(phrase.owner)
