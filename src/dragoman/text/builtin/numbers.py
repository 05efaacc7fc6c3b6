"""Numbers in words, English and German: twenty-one, einundzwanzig; twenty-first, einundzwanzigste."""

from __future__ import annotations

_ENGLISH = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GERMAN = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_GERMAN_TENS = ["null", "zehn", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]

_ENGLISH_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_GERMAN_ORDINALS = {1: "erste", 3: "dritte", 7: "siebte", 8: "achte"}


def english_cardinal(n: int) -> str:
    """The number `n`, 0 to 99, in English words."""
    if n < 20:
        return _ENGLISH[n]
    tens, unit = divmod(n, 10)
    return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[unit]}" if unit else "")


def german_cardinal(n: int) -> str:
    """The number `n`, 0 to 99, in German words, units before tens."""
    if n < 20:
        return _GERMAN[n]
    tens, unit = divmod(n, 10)
    if not unit:
        return _GERMAN_TENS[tens]
    return f"{'ein' if unit == 1 else _GERMAN[unit]}und{_GERMAN_TENS[tens]}"


def english_ordinal(n: int) -> str:
    """The rank `n`, 1 to 99, in English words."""
    stem, dash, last = english_cardinal(n).rpartition("-")
    if last.endswith("y"):
        return stem + dash + last[:-1] + "ieth"
    return stem + dash + _ENGLISH_ORDINALS.get(last, last + "th")


def german_ordinal(n: int) -> str:
    """The rank `n`, 1 to 99, in German words, with the ending -e that a definite article asks for."""
    return _GERMAN_ORDINALS.get(n, german_cardinal(n) + ("te" if n < 20 else "ste"))
