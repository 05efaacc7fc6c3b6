"""The abstract sentence in German: case, agreement, word order and commas.

The order between the finite verb and the end of the clause is fixed: pronouns, time, cause, frequency, dative,
accusative, nicht, manner, company, prepositional object, place, predicate.
"""

from __future__ import annotations

import re
from dataclasses import replace

from dragoman.text.builtin import german_words as words
from dragoman.text.builtin.nouns import Case
from dragoman.text.builtin.numbers import german_cardinal
from dragoman.text.builtin.syntax import (
    Clause,
    Complex,
    Name,
    Nominal,
    NounPhrase,
    Pair,
    Predicate,
    Prepositional,
    Pronoun,
    Question,
    Role,
    Sentence,
    Statement,
)

_CONTRACTIONS = {
    "an dem": "am",
    "in dem": "im",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
    "in das": "ins",
}


def german(sentence: Sentence) -> str:
    """The sentence in German."""
    if isinstance(sentence, Statement):
        text = _main(sentence.clause, fronted=sentence.fronted) + "."
    elif isinstance(sentence, Question):
        text = _question(sentence) + "?"
    elif isinstance(sentence, Complex):
        text = _complex(sentence) + "."
    else:
        um = "um " if sentence.in_order else ""
        text = f"{_main(sentence.main)}, {um}{_infinitive(sentence.infinitive)}."
    text = re.sub(r",(?=[,.?])", "", text).replace(" ,", ",")
    return text[0].upper() + text[1:]


def noun_phrase(phrase: Nominal, case: Case) -> str:
    """A noun phrase in the given case, relative clause included."""
    if isinstance(phrase, Pronoun):
        return words.pronoun(phrase.en, case)
    if isinstance(phrase, Name):
        return phrase.text
    if isinstance(phrase, Pair):
        return f"{noun_phrase(phrase.first, case)} und {noun_phrase(phrase.second, case)}"
    column = _column(phrase)
    determiner = phrase.determiner
    parts = []
    if isinstance(phrase.owner, Name):
        parts.append(phrase.owner.text + "s")
        determiner = ""
    elif determiner == "how many":
        parts.append("wie vielen" if case == "dat" else "wie viele")
        determiner = ""
    elif phrase.owner is not None:
        determiner = "the"
    if article := words.article(determiner, case, column):
        parts.append(article)
    if phrase.count:
        parts.append(german_cardinal(phrase.count))
    if phrase.adjective is not None:
        ending = words.adjective_ending(words.declension(determiner), case, column)
        parts.append(phrase.adjective.stem + ending)
    parts.append(words.noun_form(phrase.noun, case, plural=phrase.plural))
    if isinstance(phrase.owner, NounPhrase):
        parts.append(noun_phrase(phrase.owner, "gen"))
    if phrase.relative is not None:
        clause, role = phrase.relative.clause, phrase.relative.role
        pronoun = words.relative_pronoun(_case(clause, role), column)
        return f"{' '.join(parts)}, {pronoun} {_verb_final(clause, gap=role)},"
    return " ".join(parts)


def _column(phrase: NounPhrase) -> words.Column:
    return "p" if phrase.plural else phrase.noun.gender


def _case(clause: Clause, role: Role) -> Case:
    """The case of the subject or the object."""
    return "nom" if role == "subject" else clause.verb.case


def _prepositional(part: Prepositional) -> str:
    """Preposition and noun phrase, contracted: im Garten, zur Schule."""
    first, space, rest = noun_phrase(part.phrase, part.case).partition(" ")
    opening = f"{part.de} {first}"
    return _CONTRACTIONS.get(opening, opening) + space + rest


def _verb(clause: Clause) -> tuple[str, str]:
    """The finite verb, and what stands at the end of a main clause: prefix, participle or infinitive."""
    verb, person = clause.verb, clause.subject.person
    if clause.modal is not None:
        return words.modal_form(clause.modal, clause.tense, person), verb.infinitive
    if clause.tense == "future":
        return words.auxiliary("werden", person), verb.infinitive
    if clause.tense == "present":
        return words.present(verb, person), verb.prefix
    if past := words.simple_past(verb, person):
        return past, ""
    return words.auxiliary(verb.auxiliary, person), verb.participle


def _predicate(predicate: Predicate) -> str:
    """What follows sein: alt, älter als der Lehrer, so alt wie ich, vierzig Jahre alt."""
    adjective = predicate.adjective
    if predicate.years:
        return f"{german_cardinal(predicate.years)} Jahre {adjective.de}"
    if predicate.standard is None:
        return adjective.de
    standard = noun_phrase(predicate.standard, "nom")
    return f"so {adjective.de} wie {standard}" if predicate.is_equal else f"{adjective.de_comparative} als {standard}"


def _middle(clause: Clause, *, without: Role | None = None) -> list[str]:
    """The parts between subject and verb end, in the fixed order."""
    verb = clause.verb
    pronouns = [words.reflexive(clause.subject.person)] if verb.is_reflexive else []
    adverbs: list[str] = []
    nouns: list[str] = []
    if clause.time is not None and without != "time":
        adverbs.append(clause.time.de)
    if clause.cause is not None and without != "cause":
        adverbs.append(_prepositional(clause.cause))
    if clause.frequency is not None:
        adverbs.append(clause.frequency.de)
    if clause.likes:
        adverbs.append("gern")
    if clause.recipient is not None:
        place = pronouns if isinstance(clause.recipient, Pronoun) else nouns
        place.append(noun_phrase(clause.recipient, "dat"))
    nicht = ["nicht"] if clause.is_negated else []
    last = []
    if clause.object is not None and without != "object":
        thing = clause.object
        if verb.de_preposition:
            frame = Prepositional(en="", de=verb.de_preposition, case=verb.case, phrase=thing)
            last.append(_prepositional(frame))
        elif isinstance(thing, Pronoun):
            pronouns.append(noun_phrase(thing, verb.case))
        else:
            if nicht and isinstance(thing, NounPhrase) and thing.is_indefinite:
                thing = replace(thing, determiner="no")
                nicht = []
            nouns.append(noun_phrase(thing, verb.case))
    if clause.manner is not None:
        nicht.append(clause.manner.de)
    if clause.company is not None:
        nicht.append(_prepositional(clause.company))
    if clause.place is not None and without != "place":
        last.append(_prepositional(clause.place))
    if clause.predicate is not None:
        last.append(_predicate(clause.predicate))
    return [*pronouns, *adverbs, *nouns, *nicht, *last]


def _main(clause: Clause, *, fronted: Role | None = None) -> str:
    """A main clause, finite verb second."""
    if fronted is None:
        finite, end = _verb(clause)
        return _join(noun_phrase(clause.subject, "nom"), finite, *_middle(clause), end)
    front = clause.time.de if fronted == "time" and clause.time else ""
    if fronted == "cause" and clause.cause:
        front = _prepositional(clause.cause)
    return _join(front, _verb_first(clause, gap=fronted))


def _verb_first(clause: Clause, *, gap: Role | None = None) -> str:
    """A clause from its finite verb on: a question, or what follows a fronted part."""
    finite, end = _verb(clause)
    subject = "" if gap == "subject" else noun_phrase(clause.subject, "nom")
    middle = _middle(clause, without=gap)
    if clause.verb.is_reflexive and not isinstance(clause.subject, Pronoun):
        finite = f"{finite} {middle.pop(0)}"  # gestern hat sich der Arzt beeilt
    return _join(finite, subject, *middle, end)


def _verb_final(clause: Clause, *, gap: Role | None = None) -> str:
    """A subordinate clause after its conjunction or pronoun, finite verb last."""
    finite, end = _verb(clause)
    subject = "" if gap == "subject" else noun_phrase(clause.subject, "nom")
    ending = end + finite if end and end == clause.verb.prefix else _join(end, finite)
    return _join(subject, *_middle(clause, without=gap), ending)


def _infinitive(clause: Clause) -> str:
    return _join(*_middle(clause), words.zu_infinitive(clause.verb))


def _asked(clause: Clause, role: Role) -> str:
    """The question word, or the phrase with welcher, that asks for a part of the clause."""
    part = clause.subject if role == "subject" else clause.object
    if role == "place":
        return "wohin" if clause.verb.goes else "wo"
    if role == "time":
        return "wann"
    if role == "cause":
        return "warum"
    case = _case(clause, role)
    if isinstance(part, NounPhrase):
        if part.determiner in ("which", "how many"):
            return noun_phrase(part, case)
        if not part.noun.is_person:
            return "was"
    return {"nom": "wer", "acc": "wen", "dat": "wem", "gen": "wessen"}[case]


def _question(question: Question) -> str:
    clause, role = question.clause, question.asked
    if role is None:
        return _verb_first(clause)
    return _join(_asked(clause, role), _verb_first(clause, gap=role))


def _complex(sentence: Complex) -> str:
    if sentence.asked is not None:
        opening = _asked(sentence.subordinate, sentence.asked)
    else:
        assert sentence.conjunction is not None
        opening = sentence.conjunction.de
    subordinate = _join(opening, _verb_final(sentence.subordinate, gap=sentence.asked))
    if sentence.subordinate_first:
        return f"{subordinate}, {_verb_first(sentence.main)}"
    return f"{_main(sentence.main)}, {subordinate}"


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
