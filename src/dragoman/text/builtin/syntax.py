"""The abstract sentence: one set of choices that english.py and german.py each put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.text.builtin.adjectives import Adjective
from dragoman.text.builtin.nouns import Case, Noun
from dragoman.text.builtin.phrases import NAMES, Phrase
from dragoman.text.builtin.verbs import Modal, Verb

Person = Literal["1s", "2s", "3s", "1p", "3p"]
Tense = Literal["present", "past", "future"]
Role = Literal["subject", "object", "place", "cause", "time"]

_PERSONS: dict[str, Person] = {
    "I": "1s",
    "you": "2s",
    "he": "3s",
    "she": "3s",
    "it": "3s",
    "we": "1p",
    "they": "3p",
}


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun, named by its English nominative; "you" is always du, "it" only the weather."""

    en: str

    @property
    def person(self) -> Person:
        return _PERSONS[self.en]


@dataclass(frozen=True, slots=True)
class Name:
    """A first name, the same in both languages."""

    text: str

    @property
    def person(self) -> Person:
        return "3s"

    @property
    def sex(self) -> str:
        return NAMES[self.text]


@dataclass(frozen=True, slots=True, kw_only=True)
class NounPhrase:
    """A noun with what stands around it. `determiner` is the English word, "" for none."""

    noun: Noun
    determiner: str = "the"
    count: int = 0  # 2 and more: "three old houses", always plural
    plural: bool = False
    adjective: Adjective | None = None
    owner: Name | NounPhrase | None = None  # "the teacher's": stands in place of the determiner
    relative: Relative | None = None

    @property
    def person(self) -> Person:
        return "3p" if self.plural else "3s"

    @property
    def is_indefinite(self) -> bool:
        """True where German negates with kein."""
        return self.determiner in ("a", "") and not self.count and self.owner is None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two noun phrases joined by "and"."""

    first: Name | NounPhrase
    second: Name | NounPhrase

    @property
    def person(self) -> Person:
        return "3p"


Nominal: TypeAlias = Pronoun | Name | NounPhrase | Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepositional:
    """A preposition on each side, the German case, and a noun phrase."""

    en: str
    de: str
    case: Case
    phrase: Nominal


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """What follows "to be": an adjective, compared with something ("older than"), or an age in years."""

    adjective: Adjective
    standard: Nominal | None = None
    is_equal: bool = False  # "as old as" rather than "older than"
    years: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """Who does what to whom, when, how and where."""

    subject: Nominal
    verb: Verb
    tense: Tense = "present"
    is_progressive: bool = False  # English only
    modal: Modal | None = None
    is_negated: bool = False
    likes: bool = False  # "likes to read", liest gern
    recipient: Nominal | None = None
    object: Nominal | None = None
    predicate: Predicate | None = None
    time: Phrase | None = None
    frequency: Phrase | None = None
    cause: Prepositional | None = None
    manner: Phrase | None = None
    company: Prepositional | None = None
    place: Prepositional | None = None


@dataclass(frozen=True, slots=True)
class Relative:
    """A clause about the noun it hangs on, which is the clause's subject or object."""

    clause: Clause
    role: Role


@dataclass(frozen=True, slots=True)
class Statement:
    """A main clause; `fronted`, its time or its cause stands first and German inverts."""

    clause: Clause
    fronted: Role | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question for the part that is `asked`, or for yes or no."""

    clause: Clause
    asked: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complex:
    """A main and a subordinate clause, joined by a conjunction or by the question word of what is `asked`."""

    main: Clause
    subordinate: Clause
    conjunction: Phrase | None = None
    asked: Role | None = None
    subordinate_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """A main clause and an infinitive whose subject is the main one's: "to", or "in order to"."""

    main: Clause
    infinitive: Clause
    in_order: bool


Sentence: TypeAlias = Statement | Question | Complex | Purpose


def clauses(sentence: Sentence) -> list[Clause]:
    """Every clause of the sentence, relative clauses last."""
    if isinstance(sentence, Statement | Question):
        found = [sentence.clause]
    elif isinstance(sentence, Complex):
        found = [sentence.main, sentence.subordinate]
    else:
        found = [sentence.main, sentence.infinitive]
    parts = [part for clause in found for part in (clause.subject, clause.object)]
    return found + [part.relative.clause for part in parts if isinstance(part, NounPhrase) and part.relative]
