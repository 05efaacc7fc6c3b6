"""German word forms: articles, adjective endings, nouns in four cases, verbs in five persons."""

from __future__ import annotations

from typing import Literal

from dragoman.text.builtin.nouns import Case, Noun
from dragoman.text.builtin.syntax import Person, Tense
from dragoman.text.builtin.verbs import Modal, Verb, german_stem, needs_e

Column = Literal["m", "f", "n", "p"]  # a gender, or the plural that has none
Declension = Literal["weak", "mixed", "strong"]


def _table(text: str) -> dict[tuple[Case, Column], str]:
    """A declension table, rows nom acc dat gen, columns m f n plural; "-" is an empty ending."""
    cases: tuple[Case, ...] = ("nom", "acc", "dat", "gen")
    columns: tuple[Column, ...] = ("m", "f", "n", "p")
    rows = [line.split() for line in text.strip().splitlines()]
    return {
        (case, column): "" if form == "-" else form
        for case, row in zip(cases, rows, strict=True)
        for column, form in zip(columns, row, strict=True)
    }


_DER = _table("""
    der die das die
    den die das die
    dem der dem den
    des der des der
""")
_DIESER = _table("""
    er e es e
    en e es e
    em er em en
    es er es er
""")
_EIN = _table("""
    -  e -  e
    en e -  e
    em er em en
    es er es er
""")
_ADJECTIVE: dict[Declension, dict[tuple[Case, Column], str]] = {
    "weak": _table("""
        e  e  e  en
        en e  e  en
        en en en en
        en en en en
    """),
    "mixed": _table("""
        er e  es en
        en e  es en
        en en en en
        en en en en
    """),
    "strong": _table("""
        er e  es e
        en e  es e
        em er em en
        en er en er
    """),
}
_RELATIVE = _table("""
    der   die   das    die
    den   die   das    die
    dem   der   dem    denen
    dessen deren dessen deren
""")
_EIN_WORDS = {
    "a": "ein",
    "no": "kein",
    "my": "mein",
    "your": "dein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "their": "ihr",
}
_DER_WORDS = {"this": "dies", "these": "dies", "which": "welch", "every": "jed"}

# Nominative, accusative, dative; the genitive is not in use.
_PRONOUNS = {
    "I": ("ich", "mich", "mir"),
    "you": ("du", "dich", "dir"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "it": ("es", "es", "ihm"),
    "we": ("wir", "uns", "uns"),
    "they": ("sie", "sie", "ihnen"),
}
_REFLEXIVE: dict[Person, str] = {"1s": "mich", "2s": "dich", "3s": "sich", "1p": "uns", "3p": "sich"}

_PERSONS: tuple[Person, ...] = ("1s", "2s", "3s", "1p", "3p")
_IRREGULAR: dict[tuple[str, Tense], str] = {
    ("sein", "present"): "bin bist ist sind sind",
    ("sein", "past"): "war warst war waren waren",
    ("haben", "present"): "habe hast hat haben haben",
    ("haben", "past"): "hatte hattest hatte hatten hatten",
    ("werden", "present"): "werde wirst wird werden werden",
    ("wissen", "present"): "weiß weißt weiß wissen wissen",
    ("wissen", "past"): "wusste wusstest wusste wussten wussten",
    ("können", "present"): "kann kannst kann können können",
    ("können", "past"): "konnte konntest konnte konnten konnten",
    ("müssen", "present"): "muss musst muss müssen müssen",
    ("müssen", "past"): "musste musstest musste mussten mussten",
    ("wollen", "present"): "will willst will wollen wollen",
    ("wollen", "past"): "wollte wolltest wollte wollten wollten",
    ("dürfen", "present"): "darf darfst darf dürfen dürfen",
    ("dürfen", "past"): "durfte durftest durfte durften durften",
    ("sollten", "present"): "sollte solltest sollte sollten sollten",
    ("möchten", "present"): "möchte möchtest möchte möchten möchten",
}
_FORMS = {
    (verb, tense, person): form
    for (verb, tense), forms in _IRREGULAR.items()
    for person, form in zip(_PERSONS, forms.split(), strict=True)
}


def article(determiner: str, case: Case, column: Column) -> str:
    """The German word for an English determiner, declined: der, einem, meinen, diese; "" for none."""
    if determiner == "":
        return ""
    if determiner == "the":
        return _DER[case, column]
    if determiner in _DER_WORDS:
        return _DER_WORDS[determiner] + _DIESER[case, column]
    return _EIN_WORDS[determiner] + _EIN[case, column]


def declension(determiner: str) -> Declension:
    """Which adjective endings follow the determiner."""
    if determiner == "":
        return "strong"
    return "weak" if determiner == "the" or determiner in _DER_WORDS else "mixed"


def adjective_ending(kind: Declension, case: Case, column: Column) -> str:
    """The ending of an attributive adjective."""
    return _ADJECTIVE[kind][case, column]


def noun_form(noun: Noun, case: Case, *, plural: bool) -> str:
    """The noun declined: des Lehrers, den Studenten, den Häusern."""
    if plural:
        form = noun.de_plural
        return form + "n" if case == "dat" and not form.endswith(("n", "s", "o")) else form
    if noun.gender == "f" or case == "nom":
        return noun.de
    is_weak = noun.gender == "m" and noun.genitive.endswith("n")
    return noun.genitive if case == "gen" or is_weak else noun.de


def pronoun(en: str, case: Case) -> str:
    """The personal pronoun in the nominative, accusative or dative."""
    return _PRONOUNS[en][("nom", "acc", "dat").index(case)]


def reflexive(person: Person) -> str:
    """The accusative reflexive pronoun."""
    return _REFLEXIVE[person]


def relative_pronoun(case: Case, column: Column) -> str:
    """The relative pronoun: der, dem, denen."""
    return _RELATIVE[case, column]


def present(verb: Verb, person: Person) -> str:
    """The present form without prefix: lese, liest, rufen."""
    if (verb.de, "present", person) in _FORMS:
        return _FORMS[verb.de, "present", person]
    if person == "3s":
        return verb.de_third
    if person in ("1p", "3p"):
        return verb.de
    stem = german_stem(verb.de)
    if person == "1s":
        return stem + "e"
    if needs_e(stem) and verb.de_third == stem + "et":
        return stem + "est"
    changed = verb.de_third.removesuffix("t")
    return changed + ("t" if changed.endswith(("s", "ß", "z")) else "st")


def auxiliary(name: str, person: Person) -> str:
    """The present of haben, sein or werden."""
    return _FORMS[name, "present", person]


def modal_form(modal: Modal, tense: Tense, person: Person) -> str:
    """The present or past of a modal verb."""
    return _FORMS[modal.de, tense, person]


def simple_past(verb: Verb, person: Person) -> str | None:
    """The Präteritum of sein, haben and wissen; None for all others, which use the Perfekt."""
    return _FORMS.get((verb.de, "past", person))


def zu_infinitive(verb: Verb) -> str:
    """The infinitive with zu: zu lesen, anzurufen."""
    return f"{verb.prefix}zu{verb.de}" if verb.prefix else f"zu {verb.de}"
