"""Beam search over many batches: the last sentences of each go on together, and find what they would find alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_model import BOS, EOS, PrefixModel, PrefixState
from test_beam import ALPHAS, models

from dragoman.search import beam as module
from dragoman.search.beam import batched_beam_search, beam_search
from dragoman.search.constrain import Path, constrained
from dragoman.search.step import Constraints

Start = Callable[[Sequence[int]], Any]
IDS = {"bos_id": BOS, "eos_id": EOS}


@pytest.fixture(autouse=True, scope="module")
def half_of_a_batch_is_put_aside() -> Iterator[None]:
    """Batches of tests are too small for an eighth."""
    before, module._FEW = module._FEW, 0.5
    yield
    module._FEW = before


def in_batches(step: Any, start: Start, max_lens: Sequence[int], sizes: Sequence[int], **rules: Any) -> Any:
    """The search over batches of these sizes, the last of which is repeated."""

    def batches() -> Iterator[tuple[Any, list[int]]]:
        first, number = 0, 0
        while first < len(max_lens):
            rows = range(first, min(first + sizes[min(number, len(sizes) - 1)], len(max_lens)))
            yield start(rows), [max_lens[row] for row in rows]
            first, number = rows[-1] + 1, number + 1

    return batched_beam_search(step, batches(), **IDS, **rules)


def alone(step: Any, start: Start, max_lens: Sequence[int], **rules: Any) -> Any:
    return [
        beam_search(step, start([row]), max_lens=[max_len], **IDS, **rules)[0] for row, max_len in enumerate(max_lens)
    ]


@given(
    models(),
    st.lists(st.integers(0, 8), max_size=12),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 5),
    ALPHAS,
    st.data(),
)
@settings(deadline=None, max_examples=200)
def test_each_sentence_finds_what_it_finds_alone(model, max_lens, sizes, beam, alpha, data):
    def start(rows: Sequence[int]) -> PrefixState:
        return model.start(*rows)

    rules = {"beam": beam, "length_penalty": alpha, "nbest": data.draw(st.integers(1, beam))}
    assert in_batches(model, start, max_lens, sizes, **rules) == alone(model, start, max_lens, **rules)


@given(st.integers(0, 10_000), st.integers(0, 3), st.booleans(), st.integers(1, 4), st.integers(1, 3))
@settings(deadline=None, max_examples=100)
def test_each_sentence_keeps_to_its_own_prefix_and_bans(seed, n, has_prefixes, size, beam):
    model = PrefixModel(seed, 5, eos_bias=-1.0)
    prefixes = [(2,), (), (3, 2, 2, 4), (4, 4), (), (2, 3), (3, 3, 3)] if has_prefixes else None
    step = constrained(model, Constraints(prefixes=prefixes, no_repeat_ngram=n))
    rules = {"beam": beam, "length_penalty": 0.6, "nbest": beam}
    max_lens = [3, 1, 7, 4, 6, 2, 5]

    def start(rows: Sequence[int]) -> Path[Any]:
        return Path.start(model.start(*rows), rows)

    assert in_batches(step, start, max_lens, [size], **rules) == alone(step, start, max_lens, **rules)


sizes: list[int] = []


class Watched(PrefixModel):
    """Writes down how many rows each of its steps has."""

    def __call__(self, last_ids_N, state, /):
        sizes.append(len(last_ids_N))
        return super().__call__(last_ids_N, state)


def test_the_last_of_several_batches_go_together():
    """One long sentence in each batch: as many rows in all, but the long ones share their steps."""
    model, max_lens = Watched(1, 6, eos_bias=-50.0), [9, 2, 8, 2, 9, 2, 9, 2]
    rules = {"beam": 2, "length_penalty": 0.6}
    sizes.clear()
    found = in_batches(model, lambda rows: model.start(*rows), max_lens, [2], **rules)
    n_steps, n_rows = len(sizes), sum(sizes)
    sizes.clear()
    expected = []
    for first in range(0, 8, 2):
        lens = max_lens[first : first + 2]
        expected += beam_search(model, model.start(first, first + 1), max_lens=lens, **IDS, **rules)
    assert found == expected
    assert n_rows == sum(sizes)
    assert n_steps < 0.75 * len(sizes)


def test_no_more_is_kept_than_two_batches_and_their_longest_sentence():
    """However many batches there are."""
    model = Watched(3, 5, eos_bias=-50.0)
    widths: list[int] = []

    def step(last_ids_N, path, /):
        log_probs_NV, path = constrained(model, Constraints(no_repeat_ngram=4))(last_ids_N, path)
        widths.append(path.ids_NT.shape[1])
        return log_probs_NV, path

    def start(rows: Sequence[int]) -> Path[Any]:
        return Path.start(model.start(*rows), rows)

    sizes.clear()
    in_batches(step, start, [3, 4, 3, 6] * 20, [4], beam=2, length_penalty=0.6)
    assert len(widths) > 60
    assert max(widths) < 2 * 7  # bos and six tokens, and as many of one that left
    assert max(sizes) <= 2 * 4 * 2
