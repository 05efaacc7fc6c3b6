"""What is stored comes back, in memory that does not depend on how much there is."""

import json
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.batches.sampler import BatchesConfig, epoch_batches
from dragoman.batches.store import open_store, write_store
from dragoman.errors import DataError

IDS = st.lists(st.integers(0, 36_999), max_size=20)
PAIRS = [([5, 6, 3], [7, 3]), ([8, 3], [9, 10, 11, 3])]


@given(pairs=st.lists(st.tuples(IDS, IDS), min_size=1).filter(lambda pairs: any(s or t for s, t in pairs)))
@settings(deadline=None, max_examples=50)
def test_pairs_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, pairs: list) -> None:
    folder = tmp_path_factory.mktemp("stores") / "store"
    for stored in (write_store(folder, pairs, 37_000), open_store(folder)):
        assert len(stored) == len(pairs)
        assert [(stored.src(i).tolist(), stored.tgt(i).tolist()) for i in range(len(pairs))] == pairs
        assert stored.src_lens.tolist() == [len(src) for src, _ in pairs]
        assert stored.tgt_lens.tolist() == [len(tgt) for _, tgt in pairs]
        assert stored.n_ids == sum(len(src) + len(tgt) for src, tgt in pairs)


def test_more_pairs_than_one_write_holds(tmp_path: Path) -> None:
    stored = write_store(tmp_path / "s", (([i, 3], [i + 1, i, 3]) for i in range(9000)), 10_000)
    for i in (0, 4095, 4096, 8191, 8192, 8999):
        assert stored.src(i).tolist() == [i, 3]
        assert stored.tgt(i).tolist() == [i + 1, i, 3]


@pytest.mark.parametrize(("vocab_size", "n_bytes"), [(65_536, 2), (65_537, 4)])
def test_ids_take_as_few_bytes_as_the_vocabulary_allows(tmp_path: Path, vocab_size: int, n_bytes: int) -> None:
    stored = write_store(tmp_path / "s", [([vocab_size - 1, 3], [3])], vocab_size)
    assert stored.src(0).tolist() == [vocab_size - 1, 3]
    assert stored.src(0).itemsize == n_bytes


def test_a_store_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def breaks_off() -> Iterator[tuple[list[int], list[int]]]:
        yield [1, 3], [1, 3]
        raise DataError("the text breaks off")

    folder = tmp_path / "deep" / "store"
    write_store(folder, PAIRS, 100)
    with pytest.raises(DataError, match="breaks off"):
        write_store(folder, breaks_off(), 100)
    assert open_store(folder).src(0).tolist() == [5, 6, 3]
    (folder.parent / "store.part").mkdir()  # a run was killed while writing
    assert write_store(folder, PAIRS[1:], 100).src(0).tolist() == [8, 3]
    assert [entry.name for entry in folder.parent.iterdir()] == ["store"]


def test_other_folders_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(DataError, match="holds something else"):
        write_store(tmp_path, PAIRS, 100)
    assert (tmp_path / "thesis.txt").exists()


def test_no_pairs_make_no_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is left"):
        write_store(tmp_path / "s", [], 100)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["header.json", "index.bin", "ids.bin"])
@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "garbage"])
def test_a_damaged_store_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / "s"
    write_store(folder, PAIRS, 100)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage != "missing":
        damaged = {"cut": content[:-2], "empty": b"", "garbage": b"\xff" * (len(content) + 1)}
        (folder / name).write_bytes(damaged[damage])
    with pytest.raises(DataError, match="is not a complete store of encoded pairs") as caught:
        open_store(folder)
    assert "delete the folder" in str(caught.value.hint)


@pytest.mark.parametrize("change", [{"version": 99}, {"n_pairs": 3}, {"n_ids": "x"}, {"bytes_per_id": 4}])
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    write_store(tmp_path / "s", PAIRS, 100)
    header = tmp_path / "s" / "header.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | change))
    with pytest.raises(DataError, match="is not a complete store"):
        open_store(tmp_path / "s")


def test_forty_times_the_pairs_need_the_same_memory(tmp_path: Path) -> None:
    def peak_bytes(n_pairs: int) -> int:
        ids = np.arange(4, 20).tolist()
        tracemalloc.start()
        stored = write_store(tmp_path / str(n_pairs), ((ids[:9], ids) for _ in range(n_pairs)), 100)
        for batch in islice(epoch_batches(stored, BatchesConfig(tokens=256), seed=1, epoch=0), 20):
            assert len(batch) <= 16
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(10)  # what is loaded once
    assert peak_bytes(200_000) < 1.5 * peak_bytes(5_000)
