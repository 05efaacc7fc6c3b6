"""The abstract sentence in English: agreement, do-support, articles and word order."""

from __future__ import annotations

from dataclasses import replace

from dragoman.text.builtin.numbers import english_cardinal
from dragoman.text.builtin.syntax import (
    Clause,
    Complex,
    Name,
    Nominal,
    NounPhrase,
    Pair,
    Person,
    Predicate,
    Prepositional,
    Pronoun,
    Question,
    Role,
    Sentence,
    Statement,
    Tense,
)
from dragoman.text.builtin.verbs import EXIST, Verb, ing_form

_OBJECT_FORMS = {"I": "me", "you": "you", "he": "him", "she": "her", "it": "it", "we": "us", "they": "them"}
_BE: dict[Person, tuple[str, str]] = {
    "1s": ("am", "was"),
    "2s": ("are", "were"),
    "3s": ("is", "was"),
    "1p": ("are", "were"),
    "3p": ("are", "were"),
}
_AUXILIARIES = ("can", "could", "should", "would", "will", "am", "is", "are", "was", "were")


def english(sentence: Sentence) -> str:
    """The sentence in English."""
    if isinstance(sentence, Statement):
        text = _main(sentence.clause, fronted=sentence.fronted) + "."
    elif isinstance(sentence, Question):
        text = _question(sentence) + "?"
    elif isinstance(sentence, Complex):
        text = _complex(sentence) + "."
    else:
        opening = "in order to" if sentence.in_order else "to"
        inner = sentence.infinitive
        text = _join(_main(sentence.main), opening, inner.verb.en, *_after_verb(inner)) + "."
    text = text.replace(" ,", ",")
    return text[0].upper() + text[1:]


def noun_phrase(phrase: Nominal) -> str:
    """A noun phrase, relative clause included; a pronoun in its subject form."""
    if isinstance(phrase, Pronoun):
        return phrase.en
    if isinstance(phrase, Name):
        return phrase.text
    if isinstance(phrase, Pair):
        return f"{noun_phrase(phrase.first)} and {noun_phrase(phrase.second)}"
    noun = phrase.noun.en_plural if phrase.plural else phrase.noun.en
    text = noun if phrase.adjective is None else f"{phrase.adjective.en} {noun}"
    if phrase.count:
        text = f"{english_cardinal(phrase.count)} {text}"
    if phrase.owner is not None:
        owner = noun_phrase(phrase.owner)
        text = f"{owner}' {text}" if owner.endswith("s") and phrase.owner.person == "3p" else f"{owner}'s {text}"
    elif phrase.determiner == "a":
        text = f"{'an' if text[0] in 'aeiou' and not text.startswith(('eu', 'uni')) else 'a'} {text}"
    elif phrase.determiner:
        text = f"{phrase.determiner} {text}"
    if phrase.relative is not None:
        clause, role = phrase.relative.clause, phrase.relative.role
        text = f"{text} {'who' if phrase.noun.is_person else 'that'} {_statement(clause, without=role)}"
    return text


def third_person(base: str) -> str:
    """The third person singular: reads, goes, carries."""
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ies"
    return base + "s"


def _object(phrase: Nominal) -> str:
    return _OBJECT_FORMS[phrase.en] if isinstance(phrase, Pronoun) else noun_phrase(phrase)


def _prepositional(part: Prepositional) -> str:
    return f"{part.en} {_object(part.phrase)}"


def _finite(base: str, past: str, tense: Tense, person: Person) -> str:
    if base == "be":
        return _BE[person][tense == "past"]
    if tense == "past":
        return past
    return third_person(base) if person == "3s" else base


def _verb(clause: Clause) -> list[str]:
    """The verb's words in a plain statement, finite one first: reads; is reading; has to read."""
    verb, person = clause.verb, clause.subject.person
    if verb is EXIST and clause.object is not None:
        person = clause.object.person
    if clause.modal is not None:
        is_past = clause.tense == "past"
        first, *rest = (clause.modal.en_past if is_past else clause.modal.en_present) or ()
        if first in ("be", "have", "want"):
            past = "had" if first == "have" else "wanted"
            first = _finite(first, past, clause.tense, person)
        return [first, *rest, verb.en]
    if clause.tense == "future":
        return ["will", verb.en]
    if clause.likes:
        return [_finite("like", "liked", clause.tense, person), "to", verb.en]
    if clause.is_progressive:
        return [_finite("be", "", clause.tense, person), ing_form(verb.en)]
    return [_finite(verb.en, verb.en_past, clause.tense, person)]


def _supported(clause: Clause) -> list[str]:
    """The verb's words where the first must be an auxiliary: does read; is reading; does have to read."""
    first, *rest = _verb(clause)
    if first in _AUXILIARIES:
        return [first, *rest]
    base = clause.modal.en_present[0] if clause.modal else "like" if clause.likes else clause.verb.en
    return [_finite("do", "did", clause.tense, clause.subject.person), base, *rest]


def _predicate(predicate: Predicate) -> str:
    adjective = predicate.adjective
    if predicate.years:
        return f"{english_cardinal(predicate.years)} years {adjective.en}"
    if predicate.standard is None:
        return adjective.en
    standard = _object(predicate.standard)
    return f"as {adjective.en} as {standard}" if predicate.is_equal else f"{adjective.en_comparative} than {standard}"


def _objects(clause: Clause, verb: Verb, *, without: Role | None) -> list[str]:
    """Particle, recipient and object in their order: gives him the book; picks the guest up."""
    thing = None if without == "object" else clause.object
    if clause.recipient is not None:
        if verb.en_preposition:
            return [_object(thing) if thing else "", verb.en_preposition, _object(clause.recipient)]
        return [_object(clause.recipient), _object(thing) if thing else ""]
    if thing is None:
        return [verb.en_particle, verb.en_preposition]
    if isinstance(thing, Pronoun):
        return [verb.en_preposition, _object(thing), verb.en_particle]
    return [verb.en_particle, verb.en_preposition, _object(thing)]


def _after_verb(clause: Clause, *, without: Role | None = None) -> list[str]:
    """Everything after the verb: objects, manner, company, place, cause, time."""
    parts = _objects(clause, clause.verb, without=without)
    if clause.predicate is not None:
        parts.append(_predicate(clause.predicate))
    if clause.manner is not None:
        parts.append(clause.manner.en)
    if clause.company is not None:
        parts.append(_prepositional(clause.company))
    if clause.place is not None and without != "place":
        parts.append(_prepositional(clause.place))
    if clause.cause is not None and without != "cause":
        parts.append(_prepositional(clause.cause))
    if clause.time is not None and without != "time":
        parts.append(clause.time.en)
    return parts


def _statement(clause: Clause, *, without: Role | None = None) -> str:
    """The clause in statement order, with one part left out if it stands elsewhere."""
    if clause.verb is EXIST and clause.is_negated and isinstance(clause.object, NounPhrase):
        clause = replace(clause, is_negated=False, object=replace(clause.object, determiner="no"))
    subject = "" if without == "subject" else _subject(clause)
    often = clause.frequency.en if clause.frequency is not None else ""
    first, *rest = _supported(clause) if clause.is_negated else _verb(clause)
    if clause.is_negated:
        opening = [subject, "cannot"] if first == "can" else [subject, first, "not"]
        opening.append(often)
    elif first in _AUXILIARIES:
        opening = [subject, first, often]
    else:
        opening = [subject, often, first]
    return _join(*opening, *rest, *_after_verb(clause, without=without))


def _subject(clause: Clause) -> str:
    return "there" if clause.verb is EXIST else noun_phrase(clause.subject)


def _main(clause: Clause, *, fronted: Role | None = None) -> str:
    if fronted == "time" and clause.time is not None:
        return _join(clause.time.en, _statement(clause, without="time"))
    if fronted == "cause" and clause.cause is not None:
        return _join(_prepositional(clause.cause), _statement(clause, without="cause"))
    return _statement(clause)


def _asked(clause: Clause, role: Role) -> str:
    """The question word, or the phrase with "which", that asks for a part of the clause."""
    part = clause.subject if role == "subject" else clause.object
    if role in ("place", "time", "cause"):
        return {"place": "where", "time": "when", "cause": "why"}[role]
    if isinstance(part, NounPhrase):
        if part.determiner in ("which", "how many"):
            return noun_phrase(part)
        if not part.noun.is_person:
            return "what"
    return "who"


def _question(question: Question) -> str:
    clause, role = question.clause, question.asked
    if role == "subject":
        return _join(_asked(clause, role), _statement(clause, without=role))
    first, *rest = _supported(clause)
    often = clause.frequency.en if clause.frequency is not None else ""
    opening = "" if role is None else _asked(clause, role)
    return _join(opening, first, _subject(clause), often, *rest, *_after_verb(clause, without=role))


def _complex(sentence: Complex) -> str:
    if sentence.asked is not None:
        opening = _asked(sentence.subordinate, sentence.asked)
    else:
        assert sentence.conjunction is not None
        opening = sentence.conjunction.en
    subordinate = _join(opening, _statement(sentence.subordinate, without=sentence.asked))
    main = _statement(sentence.main)
    return f"{subordinate}, {main}" if sentence.subordinate_first else f"{main} {subordinate}"


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
