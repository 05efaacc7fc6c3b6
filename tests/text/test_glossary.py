"""Terms: read, found in sources, and found in targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.text.glossary import Glossary, Term, all_met, most_changed_words, untouched, word_starts


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# animals\ndog\tHund\tHunde\n\nguide dog\tBlindenhund\n", encoding="utf-8")
    assert Glossary.read(path).terms == [Term("guide dog", ("Blindenhund",)), Term("dog", ("Hund", "Hunde"))]


@pytest.mark.parametrize(("text", "words"), [("dog\n", "line 1"), ("a\tb\ndog\t\n", "line 2"), ("\n", "has no terms")])
def test_a_file_that_is_no_glossary(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "terms.tsv").write_text(text)
    with pytest.raises(DataError, match=words):
        Glossary.read(tmp_path / "terms.tsv")


def test_terms_are_whole_words_and_the_longest_counts() -> None:
    glossary = Glossary([Term("dog", ("Hund",)), Term("guide dog", ("Blindenhund",)), Term("C++", ("C++",))])
    assert [term.src for term in glossary.terms_in("A Dog in C++.")] == ["dog", "C++"]
    assert [term.src for term in glossary.terms_in("a guide dog")] == ["guide dog"]
    assert glossary.terms_in("dogs and hotdog") == []


def test_any_form_will_do() -> None:
    term = Term("dog", ("Hund", "Hunde"))
    assert term.met("Der Hund bellt.") == "Hund"
    assert term.met("Die Hunde bellen.") == "Hunde"
    assert term.met("Hundert Katzen") is None
    assert all_met([term], "ein hund")
    assert not all_met([term, Term("cat", ("Katze",))], "ein Hund")


def test_what_is_left_untouched() -> None:
    src = "Write to ann@b.org, see https://x.org/a?b=1. Hello {name}, ${n}, %s, %(who)s <b>3.5</b> or 7."
    assert [term.src for term in untouched(src)] == [
        "ann@b.org", "https://x.org/a?b=1", "{name}", "${n}", "%s", "%(who)s", "<b>", "3.5", "</b>", "7",
    ]  # fmt: skip
    assert untouched("nothing to see") == []


def test_where_words_begin() -> None:
    assert word_starts("ein Hund.") == [0, 4, 9]
    assert word_starts("") == [0]


def test_a_source_without_a_term() -> None:
    assert Term("hot dog", ("Wurst",)).left_out("A Hot Dog, two hot dogs.") == "A , two hot dogs."
    assert Term("dog", ("Hund",)).left_out("dog") == ""


def test_the_words_that_change_most() -> None:
    """Bits of words add up, marks around a word are not a part of it, and words beside the first may go with it."""
    text = "Ein (brauner) Hund läuft."
    bits = [(3, 0.1), (5, 0.0), (8, 0.4), (12, 0.4), (13, 0.0), (18, 3.0), (23, 0.2), (24, 0.0), (25, 9.0)]
    assert most_changed_words(text, bits) == [(14, 18)]
    assert text[14:18] == "Hund"
    bits[2] = (8, 1.2)  # half as much as "Hund", together with the rest of its word
    assert most_changed_words(text, bits) == [(5, 12), (14, 18), (5, 18)]
    assert most_changed_words(text, [(25, 0.0)]) == []
    assert most_changed_words("...", [(3, 1.0)]) == []
