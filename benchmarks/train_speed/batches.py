"""The work that all peers share: batches of Multi30k English-German, in the order of one shuffled epoch.

Letters: B batch, S source length, T target length.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dragoman.batches.batch import make_batch
from dragoman.batches.sampler import BatchesConfig, epoch_batches
from dragoman.batches.store import write_store
from dragoman.tokens.subwords import Subwords

_VOCAB_SIZE = 8000
_TOKENS = 4096  # on each side of a batch, padding included
_N_BATCHES = 40


def write_batches(data: Path, path: Path) -> None:
    """An .npz of `src_<i>` (B, S), `tgt_in_<i>` and `tgt_out_<i>` (B, T): int64, padded with 0 on the right."""
    pairs = list(zip(_lines(data / "train.en.gz"), _lines(data / "train.de.gz"), strict=True))
    subwords = Subwords.train((side for pair in pairs for side in pair), _VOCAB_SIZE)
    arrays: dict[str, np.ndarray] = {"vocab_size": np.array(subwords.vocab_size)}
    with TemporaryDirectory() as folder:
        encoded = (tuple([*subwords.encode(side), subwords.eos_id] for side in pair) for pair in pairs)
        store = write_store(Path(folder) / "pairs", encoded, subwords.vocab_size)
        order = epoch_batches(store, BatchesConfig(tokens=_TOKENS), seed=1, epoch=0)
        for i, indices in enumerate(islice(order, _N_BATCHES)):
            batch = make_batch(store, indices, pad_id=subwords.pad_id, bos_id=subwords.bos_id)
            arrays[f"src_{i}"] = batch.src_BS.numpy()
            arrays[f"tgt_in_{i}"] = batch.tgt_in_BT.numpy()
            arrays[f"tgt_out_{i}"] = batch.tgt_out_BT.numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")
