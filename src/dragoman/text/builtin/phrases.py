"""Fixed phrases of the built-in corpus: when, how often, how, and the words that join clauses."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.text.builtin import numbers


@dataclass(frozen=True, slots=True)
class Phrase:
    """An English phrase and its one German translation."""

    en: str
    de: str


def _phrases(table: str) -> list[Phrase]:
    rows = [line.split("=") for line in table.strip().splitlines()]
    return [Phrase(en.strip(), de.strip()) for en, de in rows]


PAST_TIMES = _phrases("""
    yesterday = gestern
    last week = letzte Woche
    last year = letztes Jahr
    last summer = letzten Sommer
    yesterday evening = gestern Abend
    two days ago = vor zwei Tagen
    three weeks ago = vor drei Wochen
""")
HABITUAL_TIMES = _phrases("""
    every day = jeden Tag
    every week = jede Woche
    every year = jedes Jahr
    every morning = jeden Morgen
    every evening = jeden Abend
    at the weekend = am Wochenende
    in summer = im Sommer
    in winter = im Winter
    in the morning = am Morgen
""")
PRESENT_TIMES = _phrases("""
    today = heute
    now = jetzt
    at the moment = im Moment
""")
FUTURE_TIMES = _phrases("""
    tomorrow = morgen
    tomorrow morning = morgen früh
    next week = nächste Woche
    next year = nächstes Jahr
    soon = bald
    in two days = in zwei Tagen
    in three weeks = in drei Wochen
    today = heute
""")
WEEKDAYS = _phrases("""
    Monday = Montag
    Tuesday = Dienstag
    Wednesday = Mittwoch
    Thursday = Donnerstag
    Friday = Freitag
    Saturday = Samstag
    Sunday = Sonntag
""")
MONTHS = _phrases("""
    January = Januar
    February = Februar
    March = März
    April = April
    May = Mai
    June = Juni
    July = Juli
    August = August
    September = September
    October = Oktober
    November = November
    December = Dezember
""")
FREQUENCIES = _phrases("""
    often = oft
    always = immer
    never = nie
    sometimes = manchmal
    usually = meistens
    rarely = selten
""")
CAUSES = _phrases("""
    because of = wegen
    despite = trotz
""")
DURING = Phrase("during", "während")
CONJUNCTIONS = {
    phrase.de: phrase
    for phrase in _phrases("""
    because = weil
    although = obwohl
    if = wenn
    when = als
    while = während
    before = bevor
    as soon as = sobald
    that = dass
    whether = ob
""")
}
NAMES = {"Anna": "f", "Maria": "f", "Julia": "f", "Laura": "f", "Peter": "m", "Paul": "m", "Martin": "m", "Leo": "m"}


# With the German verbs each one suits.
_MANNERS = """
    slowly = langsam = lesen essen trinken gehen fahren laufen
    quickly = schnell = lesen schreiben essen trinken laufen öffnen schließen aufräumen einschlafen aufwachen
    quietly = leise = singen öffnen schließen lachen weinen aufstehen
    carefully = vorsichtig = fahren öffnen schließen waschen tragen putzen auspacken
    alone = allein = wohnen arbeiten reisen kochen tanzen singen sitzen warten spielen einkaufen
"""


def _manners() -> dict[str, list[Phrase]]:
    """The adverbs of manner that suit each German verb."""
    suited: dict[str, list[Phrase]] = {}
    for line in _MANNERS.strip().splitlines():
        en, de, infinitives = [column.strip() for column in line.split("=")]
        for infinitive in infinitives.split():
            suited.setdefault(infinitive, []).append(Phrase(en, de))
    return suited


MANNERS = _manners()


def weekday(day: Phrase) -> Phrase:
    """On Monday, am Montag."""
    return Phrase(f"on {day.en}", f"am {day.de}")


def date(day: int, month: Phrase) -> Phrase:
    """On the third of May, am dritten Mai."""
    return Phrase(
        f"on the {numbers.english_ordinal(day)} of {month.en}", f"am {numbers.german_ordinal(day)}n {month.de}"
    )


def month(name: Phrase) -> Phrase:
    """In May, im Mai."""
    return Phrase(f"in {name.en}", f"im {name.de}")


def year(number: int) -> Phrase:
    """In 1998, im Jahr 1998."""
    return Phrase(f"in {number}", f"im Jahr {number}")


def clock(hour: int, quarter: int) -> Phrase:
    """The time `quarter` quarters past `hour`: at half past six, um halb sieben."""
    english, german = numbers.english_cardinal, numbers.german_cardinal
    following = hour % 12 + 1
    return (
        Phrase(f"at {english(hour)} o'clock", f"um {'ein' if hour == 1 else german(hour)} Uhr"),
        Phrase(f"at quarter past {english(hour)}", f"um Viertel nach {german(hour)}"),
        Phrase(f"at half past {english(hour)}", f"um halb {german(following)}"),
        Phrase(f"at quarter to {english(following)}", f"um Viertel vor {german(following)}"),
    )[quarter]
