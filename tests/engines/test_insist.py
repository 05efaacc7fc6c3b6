"""Insisting on terms, with a search made of a table: where they go, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.engines.insist import insist
from dragoman.text.glossary import Term


@dataclass(frozen=True)
class Found:
    text: str
    score: float


DOG = Term("dog", ("Vierbeiner",))
BEST = Found("Ein Hund läuft.", -1.0)


def search_in(table: dict[str, list[Found]], asked: list[str]) -> object:
    def search(beginnings: list[str]) -> list[Found]:
        asked.extend(beginnings)
        return [one for beginning in beginnings for one in table.get(beginning, [])]

    return search


def run(table: dict[str, list[Found]], places: list[tuple[int, int]]) -> tuple[str, list[str]]:
    asked: list[str] = []
    found = insist(BEST, [DOG], search_in(table, asked), lambda text, term: places)  # type: ignore[arg-type]
    return found.text, asked


def test_a_term_takes_the_place_of_its_word() -> None:
    """With what came after, or with what is found anew, whichever is better, but not beside the word it is for."""
    table = {
        "Ein Vierbeiner": [Found("Ein Vierbeiner Hund läuft.", -1.5), Found("Ein Vierbeiner rennt.", -2.0)],
        "Ein Vierbeiner läuft.": [Found("Ein Vierbeiner läuft.", -3.0)],
    }
    text, asked = run(table, [(4, 8)])
    assert text == "Ein Vierbeiner rennt."
    assert asked == ["Ein Vierbeiner", "Ein Vierbeiner läuft."]
    del table["Ein Vierbeiner"]
    assert run(table, [(4, 8)])[0] == "Ein Vierbeiner läuft."


def test_at_the_beginning_a_term_is_as_tall_as_what_was_there() -> None:
    _, asked = run({}, [(0, 3)])
    assert asked[:2] == ["Vierbeiner", "Vierbeiner Hund läuft."]
    small = insist(BEST, [Term("x", ("vier",))], search_in({}, asked := []), lambda *_: [(0, 3)])  # type: ignore[arg-type]
    assert asked[0] == "Vier"
    assert small == BEST


def test_without_a_good_place_every_place_is_tried() -> None:
    table = {"Ein Hund läuft. Vierbeiner": [Found("Ein Hund läuft. Vierbeiner.", -4.0)]}
    for places in ([], [(4, 8)]):
        text, asked = run(table, places)
        assert text == "Ein Hund läuft. Vierbeiner."
        assert {"Vierbeiner", "Ein Vierbeiner", "Ein Hund Vierbeiner"} <= set(asked)


def test_what_no_search_keeps_is_left_out() -> None:
    assert run({}, [])[0] == BEST.text
