"""Encoded pairs on disk, memory-mapped: a corpus of any size needs the same memory.

A store is a folder of three files:
  header.json   version, number of pairs, number of ids, bytes per id
  index.bin     per pair: where it starts in ids.bin, the length of each side
  ids.bin       src then tgt of the first pair, of the second, ...
"""

from __future__ import annotations

import json
import os
import shutil
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError

_VERSION = 1
_INDEX = np.dtype([("start", "<u8"), ("src_len", "<u4"), ("tgt_len", "<u4")])
_ID_TYPES: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}  # by bytes per id
_PAIRS_PER_WRITE = 4096


class EncodedPairs:
    """Pairs of id sequences, read from disk when asked for; both sides end with eos, as they were given."""

    def __init__(self, ids: npt.NDArray[np.unsignedinteger[Any]], index: npt.NDArray[np.void]) -> None:
        self._ids = ids
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @property
    def n_ids(self) -> int:
        """The number of ids on both sides of all pairs."""
        return len(self._ids)

    @property
    def src_lens(self) -> npt.NDArray[np.uint32]:
        """The length of each src in tokens, eos included (memory-mapped)."""
        return self._index["src_len"]

    @property
    def tgt_lens(self) -> npt.NDArray[np.uint32]:
        """The length of each tgt in tokens, eos included (memory-mapped)."""
        return self._index["tgt_len"]

    def src(self, i: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The source ids of pair i."""
        start, src_len, _ = self._index[i].item()
        return self._ids[start : start + src_len]

    def tgt(self, i: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The target ids of pair i."""
        start, src_len, tgt_len = self._index[i].item()
        return self._ids[start + src_len : start + src_len + tgt_len]


def write_store(
    folder: str | Path, encoded: Iterable[tuple[Sequence[int], Sequence[int]]], vocab_size: int
) -> EncodedPairs:
    """The store of these pairs, in their order; the caller has put eos at the end of both sides.

    Nothing appears under `folder` until all is written; a store already there is replaced.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / "header.json").exists() and any(folder.iterdir()):
        raise DataError(f"{folder} holds something else than encoded pairs", hint="choose another folder")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)  # left behind by a run that was killed
    part.mkdir(parents=True)
    try:
        _write_files(part, encoded, vocab_size)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return open_store(folder)


def open_store(folder: str | Path) -> EncodedPairs:
    """The pairs that `write_store` left in this folder."""
    folder = Path(folder)
    try:
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
        version, n_pairs, n_ids = header["version"], header["n_pairs"], header["n_ids"]
        id_type = _ID_TYPES[header["bytes_per_id"]]
        if version != _VERSION:
            raise ValueError(f"version {version} instead of {_VERSION}")
        index = np.memmap(folder / "index.bin", dtype=_INDEX, mode="r")
        ids = np.memmap(folder / "ids.bin", dtype=id_type, mode="r")
        if len(index) != n_pairs or len(ids) != n_ids or sum(index[-1].item()) != n_ids:
            raise ValueError("its files do not match its header")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder} is not a complete store of encoded pairs: {error}",
            hint="delete the folder; it is made again from the text",
        ) from None
    return EncodedPairs(ids, index)


def _write_files(folder: Path, encoded: Iterable[tuple[Sequence[int], Sequence[int]]], vocab_size: int) -> None:
    """Streams the pairs to the three files, a few thousand pairs in memory at a time."""
    ids = array("H" if vocab_size <= 1 << 16 else "I")
    rows: list[tuple[int, int, int]] = []
    n_pairs = n_ids = 0
    with open(folder / "ids.bin", "wb") as ids_file, open(folder / "index.bin", "wb") as index_file:

        def flush() -> None:
            ids_file.write(np.asarray(ids, dtype=_ID_TYPES[ids.itemsize]).tobytes())
            index_file.write(np.array(rows, dtype=_INDEX).tobytes())
            del ids[:]
            rows.clear()

        for src, tgt in encoded:
            rows.append((n_ids, len(src), len(tgt)))
            ids.extend(src)
            ids.extend(tgt)
            n_ids += len(src) + len(tgt)
            n_pairs += 1
            if len(rows) == _PAIRS_PER_WRITE:
                flush()
        flush()
    if n_pairs == 0:
        raise DataError("no pair is left to make batches of", hint="raise batches.max_len_tokens?")
    header = {"version": _VERSION, "n_pairs": n_pairs, "n_ids": n_ids, "bytes_per_id": ids.itemsize}
    (folder / "header.json").write_text(json.dumps(header), encoding="utf-8")
