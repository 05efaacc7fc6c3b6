"""Texts are taken apart into sentences, and nothing between them is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serve.documents import Document, parts


def test_sentences_are_found_and_abbreviations_are_not_their_end() -> None:
    text = "Dr. Smith paid $3.50. He left!\n\n  * Item one\r\n---\n"
    document = Document(text, "en")
    assert document.sentences == ["Dr. Smith paid $3.50.", "He left!", "* Item one"]
    assert document.filled(["A.", "B!", "* C"]) == "A. B!\n\n  * C\r\n---\n"


def test_an_initial_before_a_hard_space() -> None:
    """The library that splits panicked on this, with the text in its message."""
    assert Document("J.\u00a0Smith came. He left.", "en").sentences == ["J.\u00a0Smith came.", "He left."]


@given(
    st.text(alphabet=st.sampled_from("aB1. !?\"'()\n\r\t\u00a0\u2028…。éЖ你😀-"), max_size=60),
    st.sampled_from(["en", "de", "pt-BR", "ja", "hsb"]),
)
def test_the_parts_are_the_text(text: str, language: str) -> None:
    assert "".join(part for part, _ in parts(text, language)) == text
    document = Document(text, language)
    assert document.filled(document.sentences) == text
    assert all(sentence == sentence.strip() != "" for sentence in document.sentences)


@given(st.text(max_size=80))
def test_any_text_at_all_survives(text: str) -> None:
    document = Document(text, "en")
    assert document.filled(document.sentences) == text
