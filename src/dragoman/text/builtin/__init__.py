"""The built-in corpus: English and German sentence pairs from a grammar of our own, the same for the same seed.

Data: nouns.py, verbs.py, adjectives.py, phrases.py, numbers.py. One abstract sentence (syntax.py) is chosen at random
(grammar.py, sentences.py), then said in both languages (english.py, german.py). An English sentence has exactly one
German translation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from dragoman.errors import ConfigError
from dragoman.text.builtin.english import english
from dragoman.text.builtin.german import german
from dragoman.text.builtin.heldout import combinations, is_reserved, words
from dragoman.text.builtin.sentences import sentence

__all__ = ["BuiltinCorpus", "builtin_corpus"]

_MAX_WORDS = 9
_MAX_DRAWS_PER_PAIR = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinCorpus:
    """Pairs of an English and a German sentence, no English sentence twice."""

    train: list[tuple[str, str]]
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]


def builtin_corpus(*, n_train: int = 80_000, n_valid: int = 500, n_test: int = 1_000, seed: int = 0) -> BuiltinCorpus:
    """The corpus of this size and seed.

    Every sentence in `valid` and `test` has at least one combination of words that no sentence in `train` has
    (heldout.py says what a combination is), and no word that `train` lacks.
    """
    rng = Random(seed)
    seen: set[str] = set()
    train = _take(n_train, _draw(rng, seed, seen, reserved=False))
    known = {word for pair in train for word in words(pair)}
    heldout = _take(n_valid + n_test, _draw(rng, seed, seen, reserved=True), known)
    return BuiltinCorpus(train=train, valid=heldout[:n_valid], test=heldout[n_valid:])


def _draw(rng: Random, seed: int, seen: set[str], *, reserved: bool) -> Iterator[tuple[str, str] | None]:
    """New pairs with or without reserved combinations; None for a draw that gave nothing."""
    while True:
        drawn = sentence(rng)
        pair = None
        if any(is_reserved(combination, seed) for combination in combinations(drawn)) == reserved:
            src = english(drawn)
            if src not in seen and src.count(" ") < _MAX_WORDS:
                seen.add(src)
                pair = src, german(drawn)
        yield pair


def _take(
    n_pairs: int, draws: Iterator[tuple[str, str] | None], known: set[str] | None = None
) -> list[tuple[str, str]]:
    """That many pairs, all of whose words are known."""
    pairs: list[tuple[str, str]] = []
    for _ in range(_MAX_DRAWS_PER_PAIR * n_pairs):
        if len(pairs) == n_pairs:
            break
        pair = next(draws)
        if pair is not None and (known is None or known.issuperset(words(pair))):
            pairs.append(pair)
    if len(pairs) < n_pairs:
        raise ConfigError(
            f"the built-in grammar gave {len(pairs)} of the {n_pairs} sentences asked for",
            hint="ask for more training sentences, so that held-out words are known, or for fewer in all",
        )
    return pairs
