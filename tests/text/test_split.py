"""Long texts in pieces: nothing is lost, nothing is too long, and sentences stay whole where they can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.split import split_long


def shorter_than(n: int):
    return lambda text: len(text) <= n


def test_what_fits_is_left_alone() -> None:
    text = "One. Two. Three."
    assert split_long(text, shorter_than(16)) == [text]


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("One dog. Two cats! Three?", 10, ["One dog. ", "Two cats! ", "Three?"]),
        ('He said "No." She left.', 14, ['He said "No." ', "She left."]),
        ("一只狗。两只猫！", 4, ["一只狗。", "两只猫！"]),
        ("a dog, a cat and a bird", 10, ["a dog, ", "a cat ", "and a bird"]),
        ("aaaaaaaabbbbbbbb", 8, ["aaaaaaaa", "bbbbbbbb"]),
        ("3.14 is not the end.", 12, ["3.14 is ", "not the end."]),
    ],
)
def test_where_it_is_split(text: str, limit: int, pieces: list[str]) -> None:
    assert split_long(text, shorter_than(limit)) == pieces


@given(st.text(alphabet="ab .,!?。 \n\t", max_size=200), st.integers(1, 20))
def test_nothing_is_lost_or_too_long(text: str, n: int) -> None:
    pieces = split_long(text, shorter_than(n))
    assert "".join(pieces) == text
    assert all(len(piece) <= n for piece in pieces)
