"""Padded tensors hold what was stored, shifted by one for the decoder, and come ahead of time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.batches.batch import make_batch, pad_sequences, prefetch
from dragoman.batches.store import write_store


def test_make_batch(tmp_path: Path) -> None:
    pairs = write_store(tmp_path / "s", [([5, 3], [6, 7, 3]), ([9, 9, 3], [9, 3]), ([4, 4, 4, 3], [8, 3])], 70_000)
    batch = make_batch(pairs, np.array([2, 0]), pad_id=0, bos_id=2)
    assert batch.src_BS.tolist() == [[4, 4, 4, 3], [5, 3, 0, 0]]
    assert batch.tgt_in_BT.tolist() == [[2, 8, 0], [2, 6, 7]]
    assert batch.tgt_out_BT.tolist() == [[8, 3, 0], [6, 7, 3]]
    assert batch.n_tgt_tokens == 5
    assert batch.indices.tolist() == [2, 0]
    assert {t.dtype for t in (batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT)} == {torch.int64}


def test_a_turned_batch_is_that_of_the_pairs_turned_around(tmp_path: Path) -> None:
    sides = [([5, 3], [6, 7, 3]), ([9, 9, 3], [9, 3]), ([4, 4, 4, 3], [8, 3])]
    there, back = (write_store(tmp_path / "s", sides, 10), write_store(tmp_path / "t", [(t, s) for s, t in sides], 10))
    turned = make_batch(there, np.arange(3), pad_id=0, bos_id=2).turned(pad_id=0, bos_id=2)
    expected = make_batch(back, np.arange(3), pad_id=0, bos_id=2)
    for name in ("src_BS", "tgt_in_BT", "tgt_out_BT", "n_tgt_tokens", "indices"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(expected, name), err_msg=name)


def test_the_parts_of_a_batch_are_the_batches_of_its_pairs(tmp_path: Path) -> None:
    sides = [([5, 3], [6, 6, 3]), ([7, 8, 9, 3], [6, 3]), ([5, 3], [6, 7, 8, 9, 3])]
    pairs = write_store(tmp_path / "s", sides, 10)
    parts = make_batch(pairs, np.arange(3), pad_id=0, bos_id=2).parts(2, pad_id=0)
    for part, indices in zip(parts, (np.arange(1), np.arange(1, 3)), strict=True):
        expected = make_batch(pairs, indices, pad_id=0, bos_id=2)
        for name in ("src_BS", "tgt_in_BT", "tgt_out_BT", "n_tgt_tokens", "indices"):
            np.testing.assert_array_equal(getattr(part, name), getattr(expected, name), err_msg=name)


def test_a_batch_moves_as_a_whole(tmp_path: Path) -> None:
    batch = make_batch(write_store(tmp_path / "s", [([3], [5, 3])], 10), np.array([0]), pad_id=0, bos_id=2)
    moved = batch.to(torch.device("meta"))
    assert {t.device.type for t in (moved.src_BS, moved.tgt_in_BT, moved.tgt_out_BT)} == {"meta"}
    assert (moved.n_tgt_tokens, moved.indices.tolist()) == (2, [0])


@given(sequences=st.lists(st.lists(st.integers(1, 70_000), max_size=9), min_size=1, max_size=9))
@settings(deadline=None, max_examples=100)
def test_rows_are_the_sequences_and_then_padding(sequences: list[list[int]]) -> None:
    longest = max(map(len, sequences))
    expected = [s + [0] * (longest - len(s)) for s in sequences]
    for given_as in (sequences, [np.array(s, dtype=np.uint32) for s in sequences]):
        rows = pad_sequences(given_as, pad_id=0)
        assert rows.tolist() == expected
        assert rows.dtype == torch.int64


def n_prefetch_threads() -> int:
    return sum(thread.name == "dragoman-prefetch" for thread in threading.enumerate())


@pytest.mark.parametrize("depth", [1, 4])
def test_prefetch_changes_nothing_and_leaves_no_thread(depth: int) -> None:
    assert list(prefetch(range(100), depth)) == list(range(100))
    assert list(prefetch([], depth)) == []
    assert list(prefetch([None, None], depth)) == [None, None]
    assert n_prefetch_threads() == 0


def test_prefetch_works_ahead_but_not_further_than_asked() -> None:
    begun: list[int] = []
    third = threading.Event()

    def items() -> Iterator[int]:
        for i in range(10):
            begun.append(i)
            if i == 3:
                third.set()
            yield i

    ahead = prefetch(items(), depth=3)
    assert next(ahead) == 0
    assert third.wait(timeout=10)  # three more are prepared while the consumer is busy with the first
    threading.Event().wait(0.05)
    assert begun == [0, 1, 2, 3]
    assert list(ahead) == list(range(1, 10))


def test_an_exception_arrives_where_the_items_are_used() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("pair 7 is broken")

    ahead = prefetch(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="pair 7 is broken"):
        next(ahead)
    assert n_prefetch_threads() == 0


def test_leaving_early_ends_the_thread() -> None:
    for item in prefetch(iter(int, 1)):  # endless zeros
        assert item == 0
        break
    closed = prefetch(iter(int, 1))
    next(closed)
    closed.close()  # type: ignore[attr-defined]
    assert n_prefetch_threads() == 0
