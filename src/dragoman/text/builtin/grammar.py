"""Random noun phrases and clauses that agree, make sense, and have one translation only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from dragoman.text.builtin import phrases
from dragoman.text.builtin.adjectives import Adjective, suited
from dragoman.text.builtin.choices import between, chance, common, deck, pick
from dragoman.text.builtin.nouns import Noun, nouns
from dragoman.text.builtin.phrases import Phrase
from dragoman.text.builtin.syntax import Clause, Name, Nominal, NounPhrase, Pair, Prepositional, Pronoun, Tense
from dragoman.text.builtin.verbs import (
    ALONE_VERBS,
    GIVING_VERBS,
    GOING_VERBS,
    MODALS,
    OBJECT_VERBS,
    STAYING_VERBS,
    Modal,
    Verb,
)

_PRONOUNS = [Pronoun(en) for en in ("I", "I", "you", "you", "he", "she", "we", "they")]
_NAMES = [Name(text) for text in phrases.NAMES]
_PEOPLE = nouns("person")
_TROUBLES = nouns("trouble")
_EVENTS = nouns("concert party trip wedding meeting exam film")
_POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
_ANYONES = list(_POSSESSIVES.values())
# People and places that somebody has; of the others there is only "the lawyer", "the market".
_RELATIONS = nouns(
    "friend neighbour father brother son uncle grandfather mother sister daughter aunt grandmother child "
    "teacher doctor colleague boss guest pupil"
)
_PRIVATE = nouns("house garden kitchen room office cellar school village city")
_FAMILIES = deck({"object": 60, "giving": 9, "going": 9, "staying": 13, "alone": 9})
_VERBS = {
    "object": OBJECT_VERBS,
    "giving": GIVING_VERBS,
    "going": GOING_VERBS,
    "staying": STAYING_VERBS,
    "alone": ALONE_VERBS,
}
_CAUSED = [verb for verb in GOING_VERBS + STAYING_VERBS + ALONE_VERBS if verb.infinitive != "wohnen"]
_LIKED = [
    "lesen",
    "schreiben",
    "essen",
    "trinken",
    "kochen",
    "zeichnen",
    "besuchen",
    "helfen",
    "singen",
    "tanzen",
    "reisen",
    "einkaufen",
    "fernsehen",
    "fotografieren",
    "füttern",
    "einladen",
]
_FOR_SOMEONE = ["kaufen", "kochen", "mitbringen", "bestellen", "zeichnen"]
_MUST_BE_SOMEWHERE = ["wohnen", "bleiben", "sitzen"]

# How a noun phrase opens, for one countable noun. "'s" stands for an owner, "s" for a plural, "3" for a number.
_OPENINGS = deck(
    {"the": 34, "a": 20, "my": 17, "this": 5, "the s": 7, "s": 5, "my s": 3, "these s": 2, "3 s": 6, "'s": 6}
)
_NEGATED_OPENINGS = deck({"the": 30, "a": 35, "my": 15, "s": 15, "this": 5})
_PERSON_OPENINGS = deck({"the": 50, "a": 8, "my": 22, "this": 4, "the s": 10, "my s": 3, "every": 3, "3 s": 5, "'s": 5})
_MASS_OPENINGS = deck({"": 55, "the": 30, "my": 15})
_PLACE_OPENINGS = deck({"the": 17, "a": 2, "this": 1})

_SUBJECTS = deck({"pronoun": 30, "name": 14, "pair": 4, "noun": 52})
_LIGHT_SUBJECTS = deck({"pronoun": 50, "name": 20, "noun": 30})
_TENSES: list[Tense] = deck({"present": 45, "past": 40, "future": 15})
_STATIVE_TENSES: list[Tense] = deck({"present": 1, "past": 1})
_HABITS = deck({"plain": 4, "clock": 1})
_DATES = deck({"plain": 38, "weekday": 13, "date": 24, "month": 10, "clock": 15})
_PAST_DATES = [*_DATES, *deck({"year": 12})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """When and how a clause holds: chosen before its words, which depend on it."""

    tense: Tense
    is_progressive: bool = False
    modal: Modal | None = None
    is_negated: bool = False


_HABIT = Setting(tense="present")


def setting(rng: Random, verb: Verb, subject: Nominal, *, may_negate: bool = True) -> Setting:
    """A tense, a modal and a polarity that suit the verb."""
    is_every = isinstance(subject, NounPhrase) and subject.determiner == "every"
    is_negated = may_negate and not is_every and chance(rng, 0.15)
    if not verb.is_stative and chance(rng, 0.18):
        modal = pick(rng, MODALS)
        tense: Tense = "past" if modal.en_past is not None and chance(rng, 0.35) else "present"
        return Setting(tense=tense, modal=modal, is_negated=is_negated)
    tense = pick(rng, _STATIVE_TENSES if verb.is_stative else _TENSES)
    is_progressive = tense == "present" and not verb.is_stative and chance(rng, 0.5)
    if verb.past_looks_present and tense == "present" and subject.person != "3s":
        is_progressive = True
    return Setting(tense=tense, is_progressive=is_progressive, is_negated=is_negated)


def time(rng: Random, when: Setting) -> Phrase:
    """A time that suits the tense."""
    if when.is_progressive:
        return pick(rng, phrases.PRESENT_TIMES)
    if when.tense == "present" and when.modal is None:
        kind = pick(rng, _HABITS)
    else:
        kind = pick(rng, _PAST_DATES if when.tense == "past" else _DATES)
    if kind == "weekday":
        return phrases.weekday(pick(rng, phrases.WEEKDAYS))
    if kind == "date":
        return phrases.date(between(rng, 1, 31), pick(rng, phrases.MONTHS))
    if kind == "month":
        return phrases.month(pick(rng, phrases.MONTHS))
    if kind == "clock":
        return phrases.clock(between(rng, 1, 12), between(rng, 0, 3))
    if kind == "year":
        return phrases.year(between(rng, 2001, 2020))
    if when.tense == "past":
        return pick(rng, phrases.PAST_TIMES)
    habitual = when.tense == "present" and when.modal is None
    return pick(rng, phrases.HABITUAL_TIMES if habitual else phrases.FUTURE_TIMES)


def _possessive(rng: Random, subject: Nominal | None) -> str:
    """A possessive, mostly the subject's own; never his or her with a noun of no sex, where usage wavers."""
    if isinstance(subject, Pronoun) and subject.en in _POSSESSIVES and chance(rng, 0.6):
        return _POSSESSIVES[subject.en]
    if isinstance(subject, Name):
        return "his" if subject.sex == "m" else "her"
    if isinstance(subject, NounPhrase) and not subject.plural:
        kind = subject.noun.kind
        if kind in ("men", "women"):
            return "his" if kind == "men" else "her"
        return pick(rng, ("my", "your", "our"))
    return pick(rng, _ANYONES)


def _adjective(rng: Random, noun: Noun, probability: float) -> Adjective | None:
    fitting = suited(noun)
    return common(rng, fitting) if fitting and chance(rng, probability) else None


def is_owned(noun: Noun) -> bool:
    """True where "my" makes sense."""
    if noun.is_person:
        return noun in _RELATIONS
    return noun.kind not in ("place", "trouble", "transport") or noun in _PRIVATE


def _owner(rng: Random, noun: Noun) -> Name | NounPhrase:
    if chance(rng, 0.3):
        return pick(rng, _NAMES)
    owner = common(rng, _PEOPLE)
    while owner is noun:
        owner = common(rng, _PEOPLE)
    return NounPhrase(
        noun=owner,
        determiner=pick(rng, ("the", "the", "my", "a")) if is_owned(owner) else "the",
        adjective=_adjective(rng, owner, 0.15),
    )


def noun_phrase(
    rng: Random, noun: Noun, *, subject: Nominal | None = None, is_negated: bool = False, adjectives: float = 0.3
) -> NounPhrase:
    """A phrase around the noun, as part of a clause with that subject."""
    adjective = _adjective(rng, noun, adjectives)
    if noun.is_mass:
        opening = pick(rng, _MASS_OPENINGS)
    elif is_negated:
        opening = pick(rng, _NEGATED_OPENINGS)
    else:
        opening = pick(rng, _PERSON_OPENINGS if noun.is_person else _OPENINGS)
    if not is_owned(noun):
        opening = opening.replace("my", "the").replace("'s", "the")
    if opening == "'s":
        return NounPhrase(noun=noun, adjective=adjective, owner=_owner(rng, noun))
    word, _, plural = opening.rpartition(" ") if opening.endswith(" s") else (opening, "", "")
    if opening == "s":
        word, plural = "", "s"
    count = 0
    if word == "3":
        word = ""
        count = between(rng, 2, 12) if chance(rng, 0.8) else between(rng, 13, 40)
    elif word == "my":
        word = _possessive(rng, subject)
    return NounPhrase(noun=noun, determiner=word, count=count, plural=bool(plural), adjective=adjective)


def subject(rng: Random, verb: Verb, *, light: bool = False) -> Nominal:
    """Someone or something that can do what the verb says; a light one is mostly a single word."""
    if verb.subjects[0].is_person:
        kind = pick(rng, _LIGHT_SUBJECTS if light else _SUBJECTS)
        if kind == "pronoun":
            return pick(rng, _PRONOUNS)
        if kind == "name":
            return pick(rng, _NAMES)
        if kind == "pair":
            first, second = pick(rng, _NAMES), common(rng, _RELATIONS)
            return Pair(first, NounPhrase(noun=second, determiner="his" if first.sex == "m" else "her"))
    return noun_phrase(rng, common(rng, verb.subjects), adjectives=0.15)


def _other_person(rng: Random, subject: Nominal, candidates: list[Noun], *, is_negated: bool) -> Nominal:
    """A person or animal other than the subject, at times as a pronoun or a name."""
    if candidates[0].is_person and chance(rng, 0.3):
        if chance(rng, 0.3):
            return pick(rng, [name for name in _NAMES if name != subject])
        return pick(
            rng, [other for other in _PRONOUNS if other.person[0] != subject.person[0] or other.person[0] == "3"]
        )
    noun = common(rng, candidates)
    while len(candidates) > 1 and isinstance(subject, NounPhrase) and noun is subject.noun:
        noun = common(rng, candidates)
    phrase = noun_phrase(rng, noun, subject=subject, is_negated=is_negated)
    if is_negated and phrase.is_indefinite:
        return NounPhrase(noun=noun, adjective=phrase.adjective)
    return phrase


@cache
def _people_among(verb: Verb) -> list[Noun]:
    return [noun for noun in verb.objects if noun.is_person]


def thing(rng: Random, verb: Verb, subject: Nominal, *, is_negated: bool = False) -> Nominal:
    """An object that suits the verb."""
    noun = common(rng, verb.objects)
    if noun.is_person:
        return _other_person(rng, subject, _people_among(verb), is_negated=is_negated)
    return noun_phrase(rng, noun, subject=subject, is_negated=is_negated)


def place(rng: Random, verb: Verb) -> Prepositional:
    """Where the verb happens, or leads to."""
    where = common(rng, verb.places)
    phrase = NounPhrase(
        noun=where.noun,
        determiner=pick(rng, _PLACE_OPENINGS),
        adjective=_adjective(rng, where.noun, 0.2),
    )
    if verb.goes:
        return Prepositional(en="to", de=where.de_to, case="dat" if where.de_to == "zu" else "acc", phrase=phrase)
    return Prepositional(en=where.en_at, de=where.de_at, case="dat", phrase=phrase)


def _company(rng: Random, verb: Verb, subject: Nominal) -> Prepositional | None:
    """With, without or for whom, where the verb allows it."""
    if verb.infinitive in _FOR_SOMEONE and chance(rng, 0.25):
        return Prepositional(
            en="for", de="für", case="acc", phrase=_other_person(rng, subject, _PEOPLE, is_negated=False)
        )
    if verb.places and chance(rng, 0.15):
        en, de = pick(rng, (("with", "mit"), ("with", "mit"), ("without", "ohne")))
        phrase = _other_person(rng, subject, _PEOPLE, is_negated=False)
        return Prepositional(en=en, de=de, case="dat" if de == "mit" else "acc", phrase=phrase)
    return None


def _cause(rng: Random, verb: Verb) -> Prepositional:
    """A circumstance in the genitive: because of the rain, during the concert."""
    if not verb.goes and chance(rng, 0.4):
        noun, word = common(rng, _EVENTS), phrases.DURING
    else:
        noun, word = pick(rng, _TROUBLES), pick(rng, phrases.CAUSES)
    phrase = NounPhrase(noun=noun, adjective=_adjective(rng, noun, 0.25))
    return Prepositional(en=word.en, de=word.de, case="gen", phrase=phrase)


def verb(rng: Random) -> Verb:
    """Any verb that stands in an ordinary clause."""
    return common(rng, _VERBS[pick(rng, _FAMILIES)])


def clause(
    rng: Random,
    doing: Verb,
    who: Nominal,
    *,
    when: Setting | None = None,
    extras: float = 1.0,
    may_negate: bool = True,
) -> Clause:
    """A clause about `who` and `doing`; `extras` scales how many adverbials it carries."""
    when = when or setting(rng, doing, who, may_negate=may_negate)
    if doing.infinitive in _LIKED and when == _HABIT and chance(rng, 0.4):
        return _liking(rng, doing, who)
    recipient = done_to = where = how = why = often = at = None
    if doing in GIVING_VERBS:
        recipient = _other_person(rng, who, _PEOPLE, is_negated=when.is_negated)
    if doing.objects:
        done_to = thing(rng, doing, who, is_negated=when.is_negated)
    if doing.places and (doing.goes or doing.infinitive in _MUST_BE_SOMEWHERE or chance(rng, 0.7)):
        where = place(rng, doing)
    if doing.infinitive in phrases.MANNERS and not when.is_negated and chance(rng, 0.4 * extras):
        how = pick(rng, phrases.MANNERS[doing.infinitive])
        if isinstance(done_to, NounPhrase) and done_to.is_indefinite:
            how = None
    may_have_company = how is None and not when.is_negated and chance(rng, extras)
    company = _company(rng, doing, who) if may_have_company else None
    if doing in _CAUSED and not how and not company and chance(rng, 0.25 * extras):
        why = _cause(rng, doing)
    elif when == _HABIT and not doing.is_stative and chance(rng, 0.3):
        often = pick(rng, phrases.FREQUENCIES)
    elif not (doing.is_stative and when.tense == "present") and chance(rng, 0.45 * extras):
        at = time(rng, when)
    return Clause(
        subject=who,
        verb=doing,
        tense=when.tense,
        is_progressive=when.is_progressive,
        modal=when.modal,
        is_negated=when.is_negated,
        recipient=recipient,
        object=done_to,
        time=at,
        frequency=often,
        cause=why,
        manner=how,
        company=company,
        place=where,
    )


def _liking(rng: Random, doing: Verb, who: Nominal) -> Clause:
    """What someone likes to do: lesen gern Bücher."""
    liked: Nominal | None = None
    if doing.objects:
        noun = common(rng, doing.objects)
        if noun.is_person:
            liked = _other_person(rng, who, _PEOPLE, is_negated=False)
        else:
            adjective = _adjective(rng, noun, 0.4)
            liked = NounPhrase(noun=noun, determiner="", plural=not noun.is_mass, adjective=adjective)
    where = place(rng, doing) if doing.places else None
    return Clause(subject=who, verb=doing, likes=True, object=liked, place=where)
