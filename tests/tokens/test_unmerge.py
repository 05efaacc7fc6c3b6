"""Subwords that fall apart: the text stays, the rate is kept, and chance depends on the generator alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.tokens.subwords import EOS_ID, Subwords, TokensConfig
from dragoman.tokens.unmerge import Unmerging

TEXT = [
    "Ein Mann fährt mit dem Fahrrad durch die Straße.",
    "A man rides a bicycle through the street.",
    "Zwei Frauen und ein Kind sitzen auf einer Bank im Park und lesen Bücher.",
    "Two women and a child sit on a bench in the park reading books.",
]


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(TEXT * 3, vocab_size=400)


def encoded(subwords: Subwords, texts: list[str]) -> list[np.ndarray]:
    return [np.array([*subwords.encode(text), EOS_ID], dtype=np.uint16) for text in texts]


@given(texts=st.lists(st.sampled_from(TEXT) | st.text(max_size=20), min_size=1, max_size=5), p=st.floats(0.01, 0.99))
@settings(deadline=None, max_examples=60)
def test_every_sentence_keeps_its_text_and_its_end(subwords: Subwords, texts: list[str], p: float) -> None:
    found = Unmerging(subwords, p)(encoded(subwords, texts), np.random.default_rng(0))
    assert [subwords.decode(ids) for ids in found] == texts
    assert all(ids[-1] == EOS_ID for ids in found)


def test_what_falls_apart_always_ends_as_single_characters(subwords: Subwords) -> None:
    (ids,) = Unmerging(subwords, 0.999999)(encoded(subwords, ["A man rides"]), np.random.default_rng(0))
    assert subwords.pieces(ids) == [*"▁A▁man▁rides", "</s>"]


def test_the_two_parts_are_those_of_the_last_merge(subwords: Subwords) -> None:
    """Put together again, with no merge left out, they are what SentencePiece itself makes of the piece."""
    parts = Unmerging(subwords, 0.5)._parts
    merged = [i for i in range(subwords.n_reserved, subwords.vocab_size) if len(subwords.pieces([i])[0]) > 1]
    assert len(merged) > 100
    for i in merged:
        left, right = parts[i]
        assert subwords.pieces([left])[0] + subwords.pieces([right])[0] == subwords.pieces([i])[0]
        # A merge is of what was there before: single characters, which come last, or earlier merges.
        assert all(part < i or len(subwords.pieces([part])[0]) == 1 for part in (left, right))


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5])
def test_the_rate(subwords: Subwords, p: float) -> None:
    """Of one subword alone, made of two characters, five deviations."""
    parts = Unmerging(subwords, p)._parts
    i = next(i for i in range(len(parts)) if parts[i, 0] >= 0 and len(subwords.pieces([i])[0]) == 2)
    n = 20_000
    found = Unmerging(subwords, p)([np.full(n, i)], np.random.default_rng(1))
    assert abs(len(found[0]) - n * (1 + p)) < 5 * (n * p * (1 - p)) ** 0.5


def test_chance_is_the_generators(subwords: Subwords) -> None:
    unmerging, sentences = Unmerging(subwords, 0.3), encoded(subwords, TEXT)
    one, same, other = (unmerging(sentences, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [ids.tolist() for ids in one] == [ids.tolist() for ids in same]
    assert [ids.tolist() for ids in one] != [ids.tolist() for ids in other]
    assert [ids.tolist() for ids in sentences] == [ids.tolist() for ids in encoded(subwords, TEXT)], "left as they were"


def test_bytes_and_specials_stay(subwords: Subwords) -> None:
    ids = np.arange(subwords.n_reserved)
    (found,) = Unmerging(subwords, 0.9)([ids], np.random.default_rng(0))
    assert found.tolist() == ids.tolist()


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_no_probability(p: float) -> None:
    with pytest.raises(ConfigError, match=r"tokens\.dropout"):
        TokensConfig(dropout=p)
