"""Random sentences: the constructions of the built-in corpus and how often each is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

from dragoman.text.builtin import grammar
from dragoman.text.builtin.adjectives import ADJECTIVES, described, suited
from dragoman.text.builtin.choices import between, chance, common, deck, pick
from dragoman.text.builtin.grammar import Setting
from dragoman.text.builtin.nouns import NOUNS, Noun, nouns
from dragoman.text.builtin.phrases import CONJUNCTIONS, PRESENT_TIMES
from dragoman.text.builtin.syntax import (
    Clause,
    Complex,
    NounPhrase,
    Predicate,
    Prepositional,
    Pronoun,
    Purpose,
    Question,
    Relative,
    Role,
    Sentence,
    Statement,
    Tense,
)
from dragoman.text.builtin.verbs import (
    BE,
    CLAUSE_VERBS,
    COST,
    EXIST,
    GOING_VERBS,
    INFINITIVE_VERBS,
    MODALS,
    OBJECT_VERBS,
    RAIN,
    SNOW,
    STAYING_VERBS,
    Verb,
)

_ASKED: list[Role] = deck({"subject": 25, "object": 35, "place": 20, "time": 10, "cause": 10})
_ASKED_OBJECTS = deck({"the": 55, "which": 30, "how many": 15})
_JOINING = deck({"weil": 35, "obwohl": 20, "wenn": 20, "als": 15, "während": 10, "bevor": 8, "sobald": 8})
_REASONS = deck({"clause": 60, "adjective": 25, "weather": 15})
_REPORTED = deck({"dass": 50, "ob": 20, "asked": 30})
_SMALL = deck({"price": 50, "weather": 15, "exist": 35})
_IT = Pronoun("it")
_OLD = next(adjective for adjective in ADJECTIVES if adjective.en == "old")
_WEATHER = [adjective for adjective in ADJECTIVES if adjective.en in ("cold", "warm", "hot", "dark")]
_COMPARED = [adjective for adjective in ADJECTIVES if adjective.de_comparative != "-"]
_CASE_VERBS = [verb for verb in OBJECT_VERBS if not verb.de_preposition]
_PLAIN_VERBS = [verb for verb in OBJECT_VERBS if not verb.prefix]
_PLACE_VERBS = [verb for verb in STAYING_VERBS + GOING_VERBS if verb.de != "kommen" or verb.prefix]
_ACTIVE_VERBS = [verb for verb in OBJECT_VERBS if not verb.is_stative]
_WANT = next(modal for modal in MODALS if modal.de == "wollen")
_UNINTENDED = ["verlieren", "vergessen", "tragen", "weinen", "aufwachen", "freuen", "denken", "träumen"]
_PEOPLE = nouns("person")


def _clause(rng: Random, *, extras: float = 1.0, may_negate: bool = True) -> Clause:
    verb = grammar.verb(rng)
    return grammar.clause(rng, verb, grammar.subject(rng, verb), extras=extras, may_negate=may_negate)


def _without_time_if_negated(clause: Clause) -> Clause:
    """The clause itself, or without its time where nicht, time and object would compete for one place."""
    return replace(clause, time=None) if clause.is_negated and clause.object is not None else clause


def _statement(rng: Random) -> Sentence:
    return Statement(_without_time_if_negated(_clause(rng)))


def _fronted(rng: Random) -> Sentence:
    clause = _clause(rng)
    while clause.time is None and clause.cause is None:
        clause = _clause(rng)
    return Statement(clause, "time" if clause.time is not None else "cause")


def _is_adjective(rng: Random, *, may_compare: bool = True) -> Clause:
    """Someone or something is old, older than another, or forty years old."""
    tense: Tense = pick(rng, ("present", "present", "past"))
    if chance(rng, 0.25):
        who = (
            grammar.subject(rng, grammar.verb(rng))
            if chance(rng, 0.3)
            else grammar.noun_phrase(rng, common(rng, _PEOPLE))
        )
        return Clause(subject=who, verb=BE, tense=tense, predicate=Predicate(adjective=_OLD, years=between(rng, 2, 99)))
    is_negated = chance(rng, 0.2)
    adjective = pick(rng, _COMPARED if may_compare and chance(rng, 0.45) else ADJECTIVES)
    noun = pick(rng, described(adjective))
    predicate = Predicate(adjective=adjective)
    others = [other for other in described(adjective) if other.kind == noun.kind and other is not noun]
    if may_compare and others and adjective in _COMPARED and chance(rng, 0.6):
        predicate = Predicate(adjective=adjective, standard=_known(rng, pick(rng, others)), is_equal=chance(rng, 0.3))
    return Clause(subject=_known(rng, noun), verb=BE, tense=tense, is_negated=is_negated, predicate=predicate)


def _known(rng: Random, noun: Noun) -> NounPhrase:
    """A definite phrase without an adjective."""
    mine = grammar.is_owned(noun) and chance(rng, 0.45)
    word = pick(rng, ("my", "your", "his", "her", "our", "their")) if mine else "the"
    return NounPhrase(noun=noun, determiner=word, plural=not noun.is_mass and chance(rng, 0.25))


def _predicative(rng: Random) -> Sentence:
    return Statement(_is_adjective(rng))


def _yes_no(rng: Random) -> Sentence:
    if chance(rng, 0.1):
        return Question(replace(_is_adjective(rng, may_compare=False), is_negated=False))
    return Question(_clause(rng, extras=0.6, may_negate=False))


def _asking(rng: Random) -> tuple[Clause, Role]:
    """A clause and the part of it that is asked for."""
    role = pick(rng, _ASKED)
    if role == "subject":
        verb = common(rng, _ACTIVE_VERBS)
        who = Pronoun("he")
        clause = grammar.clause(rng, verb, who, extras=0.5, may_negate=False)
        if chance(rng, 0.3) and verb.subjects[0].is_person:
            which = NounPhrase(noun=common(rng, verb.subjects), determiner="which", plural=chance(rng, 0.3))
            when = grammar.setting(rng, verb, which, may_negate=False)
            clause = grammar.clause(rng, verb, which, when=when, extras=0.5)
        return clause, role
    if role == "object":
        verb = common(rng, _CASE_VERBS)
        clause = grammar.clause(rng, verb, grammar.subject(rng, verb), extras=0.5, may_negate=False)
        noun = common(rng, verb.objects)
        determiner = pick(rng, _ASKED_OBJECTS)
        plural = determiner == "how many" or (determiner == "which" and chance(rng, 0.3))
        if noun.is_mass:
            determiner, plural = "the", False
        return replace(clause, object=NounPhrase(noun=noun, determiner=determiner, plural=plural)), role
    if role == "place":
        verb = common(rng, _PLACE_VERBS)
        clause = grammar.clause(rng, verb, grammar.subject(rng, verb), extras=0.5, may_negate=False)
        return replace(clause, place=clause.place or grammar.place(rng, verb), cause=None), role
    clause = _clause(rng, extras=0.3, may_negate=False)
    return replace(clause, cause=None, time=None if role == "time" else clause.time), role


def _w_question(rng: Random) -> Sentence:
    return Question(*_asking(rng))


def _weather(rng: Random, tense: Tense) -> Clause:
    if chance(rng, 0.6):
        verb = pick(rng, (RAIN, SNOW))
        return Clause(subject=_IT, verb=verb, tense=tense, is_progressive=tense == "present" and chance(rng, 0.5))
    return Clause(subject=_IT, verb=BE, tense=tense, predicate=Predicate(adjective=pick(rng, _WEATHER)))


def _part(rng: Random, tense: Tense | None = None, *, may_negate: bool = True) -> Clause:
    """A light clause for a longer sentence."""
    verb = grammar.verb(rng)
    while tense == "future" and verb.is_stative:
        verb = grammar.verb(rng)
    who = grammar.subject(rng, verb, light=True)
    when = grammar.setting(rng, verb, who, may_negate=may_negate)
    if tense is not None and when.tense != tense:
        progressive = tense == "present" and verb.past_looks_present and who.person != "3s"
        when = Setting(tense=tense, is_progressive=progressive, is_negated=when.is_negated)
    return grammar.clause(rng, verb, who, when=when, extras=0)


def _with_conjunction(rng: Random) -> Sentence:
    word = pick(rng, _JOINING)
    if word in ("weil", "obwohl"):
        tense: Tense = pick(rng, ("present", "past"))
        main = _part(rng, tense)
        kind = pick(rng, _REASONS)
        if kind == "clause":
            subordinate = _part(rng, tense)
        elif kind == "adjective":
            subordinate = replace(_is_adjective(rng, may_compare=False), tense=tense)
        else:
            subordinate = _weather(rng, tense)
    elif word in ("wenn", "sobald"):
        main = _part(rng, "future")
        subordinate = _weather(rng, "present") if chance(rng, 0.2) else _part(rng, "present", may_negate=word == "wenn")
        subordinate = replace(subordinate, is_progressive=subordinate.verb.past_looks_present)
    else:
        main = _part(rng, "past", may_negate=False)
        subordinate = _part(rng, "past", may_negate=False)
    first = word == "als" or chance(rng, 0.3)  # "asked him when" could otherwise be wann
    return Complex(main=main, subordinate=subordinate, conjunction=CONJUNCTIONS[word], subordinate_first=first)


def _indirect(rng: Random) -> Sentence:
    """Someone knows, says or asks something: dass, ob or a question word."""
    kind = pick(rng, _REPORTED)
    if kind == "dass":
        verb = CLAUSE_VERBS[pick(rng, ("wissen", "sagen", "glauben", "hoffen", "hören"))]
    else:
        verb = CLAUSE_VERBS[pick(rng, ("wissen", "fragen"))]
    who = grammar.subject(rng, verb)
    tense: Tense = pick(rng, ("present", "present", "past"))
    is_negated = verb.de == "wissen" and (kind == "ob" or chance(rng, 0.3))
    modal = _WANT if is_negated and kind == "ob" and tense == "present" and chance(rng, 0.3) else None
    main = Clause(subject=who, verb=verb, tense=tense, is_negated=is_negated and modal is None, modal=modal)
    if kind == "asked":
        clause, role = _asking(rng)
        while role == "time":
            clause, role = _asking(rng)
        return Complex(main=main, subordinate=clause, asked=role)
    if kind == "dass" and chance(rng, 0.25):
        inner = replace(_is_adjective(rng, may_compare=False), tense=tense)
    else:
        inner = _part(rng, "past" if tense == "past" else None)
    return Complex(main=main, subordinate=inner, conjunction=CONJUNCTIONS[kind])


def _purpose(rng: Random) -> Sentence:
    """Someone tries to do something, or goes somewhere in order to do it."""
    in_order = chance(rng, 0.4)
    doing: Verb = pick(rng, GOING_VERBS if in_order else INFINITIVE_VERBS)
    who = grammar.subject(rng, doing)
    main = _without_time_if_negated(grammar.clause(rng, doing, who, extras=0.3, may_negate=not in_order))
    main = replace(main, likes=False, manner=None, company=None, cause=None, frequency=None)
    if not in_order:
        main = replace(main, time=None)
    verb = common(rng, _ACTIVE_VERBS) if in_order else grammar.verb(rng)
    while verb.is_stative or verb.infinitive in _UNINTENDED:
        verb = grammar.verb(rng)
    inner = grammar.clause(rng, verb, who, when=Setting(tense="future"), extras=0)
    return Purpose(main=main, infinitive=inner, in_order=in_order)


@cache
def _verbs_with_object(noun: Noun) -> list[Verb]:
    """The verbs that can take the noun as an object without a preposition."""
    return [verb for verb in _CASE_VERBS if noun in verb.objects]


def _related(rng: Random, noun: Noun, *, plural: bool) -> Relative:
    """A relative clause about the noun, as its subject if it is a person, or as the object of someone's verb."""
    head = NounPhrase(noun=noun, plural=plural)
    if noun.is_person and chance(rng, 0.6):
        verb = grammar.verb(rng)
        while noun not in verb.subjects:
            verb = grammar.verb(rng)
        return Relative(grammar.clause(rng, verb, head, extras=0, may_negate=False), "subject")
    verb = common(rng, _verbs_with_object(noun))
    clause = grammar.clause(rng, verb, grammar.subject(rng, verb, light=True), extras=0, may_negate=False)
    return Relative(replace(clause, object=head, company=None, likes=False), "object")


_RELATABLE = [noun for noun in NOUNS if any(noun in verb.objects and not verb.de_preposition for verb in OBJECT_VERBS)]


def _relative(rng: Random) -> Sentence:
    """A sentence whose subject, or last object, has a relative clause."""
    plural = chance(rng, 0.25)
    if chance(rng, 0.5):
        verb = common(rng, _PLAIN_VERBS)
        who = grammar.subject(rng, verb)
        when = Setting(tense="present", is_progressive=not verb.is_stative)
        noun = common(rng, verb.objects)
        while noun not in _RELATABLE:
            noun = common(rng, verb.objects)
        plural = plural and not noun.is_mass
        adjective = grammar.noun_phrase(rng, noun).adjective
        what = NounPhrase(noun=noun, plural=plural, adjective=adjective, relative=_related(rng, noun, plural=plural))
        return Statement(replace(grammar.clause(rng, verb, who, when=when, extras=0), object=what))
    if chance(rng, 0.5):
        noun = pick(rng, _RELATABLE)
        plural = plural and not noun.is_mass
        subject = NounPhrase(noun=noun, plural=plural, relative=_related(rng, noun, plural=plural))
        clause = replace(_is_adjective(rng), is_negated=False)
        fitting = suited(noun)
        if fitting:
            predicate = Predicate(adjective=common(rng, fitting))
            return Statement(replace(clause, subject=subject, predicate=predicate))
    noun = common(rng, _PEOPLE)
    who = NounPhrase(noun=noun, plural=plural, relative=_related(rng, noun, plural=plural))
    verb = grammar.verb(rng)
    while noun not in verb.subjects:
        verb = grammar.verb(rng)
    return Statement(_without_time_if_negated(grammar.clause(rng, verb, who, extras=0.3)))


def _small(rng: Random) -> Sentence:
    """Prices, the weather and what there is."""
    kind = pick(rng, _SMALL)
    if kind == "price":
        noun = common(rng, COST.subjects)
        price = NounPhrase(noun=COST.objects[0], determiner="", count=between(rng, 2, 99), plural=True)
        what = NounPhrase(
            noun=noun, determiner=pick(rng, ("the", "this")), adjective=grammar.noun_phrase(rng, noun).adjective
        )
        return Statement(Clause(subject=what, verb=COST, object=price))
    if kind == "weather":
        clause = _weather(rng, "present")
        if clause.is_progressive or clause.predicate is not None:
            clause = replace(clause, time=pick(rng, PRESENT_TIMES))
        return Statement(clause, "time" if clause.time is not None and chance(rng, 0.5) else None)
    is_negated = chance(rng, 0.3)
    noun = common(rng, EXIST.objects)
    phrase = grammar.noun_phrase(rng, noun)
    plural = chance(rng, 0.5)
    count = between(rng, 2, 12) if plural and not is_negated and chance(rng, 0.6) else 0
    what = NounPhrase(
        noun=noun, determiner="" if plural else "a", plural=plural, count=count, adjective=phrase.adjective
    )
    where: Prepositional = grammar.place(rng, STAYING_VERBS[0])
    return Statement(Clause(subject=_IT, verb=EXIST, object=what, place=where, is_negated=is_negated))


_CONSTRUCTIONS: list[Callable[[Random], Sentence]] = deck(
    {
        _statement: 30,
        _fronted: 15,
        _predicative: 8,
        _yes_no: 9,
        _w_question: 9,
        _with_conjunction: 12,
        _indirect: 7,
        _purpose: 4,
        _relative: 4,
        _small: 4,
    }
)


def sentence(rng: Random) -> Sentence:
    """One random sentence."""
    return pick(rng, _CONSTRUCTIONS)(rng)
