"""Random choices made the same way on every platform: only `Random.random`, whose sequence is guaranteed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def pick(rng: Random, items: Sequence[T]) -> T:
    """One item, all equally likely."""
    return items[int(rng.random() * len(items))]


def common(rng: Random, items: Sequence[T]) -> T:
    """One item, the earlier ones more likely, as common words are: the first half comes up 71 % of the time."""
    return items[int(rng.random() ** 2 * len(items))]


def deck(weights: dict[T, int]) -> list[T]:
    """A list that holds each key as often as its weight, for `pick`."""
    return [item for item, weight in weights.items() for _ in range(weight)]


def between(rng: Random, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return low + int(rng.random() * (high - low + 1))


def chance(rng: Random, probability: float) -> bool:
    """True that often."""
    return rng.random() < probability
