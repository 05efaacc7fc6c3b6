"""Pairs to padded tensors, prepared ahead of their use.

Letters: B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.batches.store import EncodedPairs

Item = TypeVar("Item")
Ids = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of pairs as int64 tensors; short rows are filled up with pad_id on the right."""

    src_BS: Tensor
    tgt_in_BT: Tensor  # bos, then tgt without its eos
    tgt_out_BT: Tensor  # tgt: what the decoder should say at each position
    n_tgt_tokens: int  # positions of tgt_out that are not padding
    indices: npt.NDArray[np.int64]  # which pairs these are, for messages

    def to(self, device: torch.device) -> Batch:
        """The batch on this device; the copy to a GPU does not wait."""
        return Batch(
            _copied(self.src_BS, device),
            _copied(self.tgt_in_BT, device),
            _copied(self.tgt_out_BT, device),
            self.n_tgt_tokens,
            self.indices,
        )

    def parts(self, n_parts: int, *, pad_id: int) -> Iterator[Batch]:
        """The batch in so many parts of about equal numbers of pairs, none wider than its longest sentences."""
        bounds = [len(self.src_BS) * number // n_parts for number in range(n_parts + 1)]
        sides = (self.src_BS, self.tgt_in_BT, self.tgt_out_BT)
        for rows in (slice(*ends) for ends in pairwise(bounds)):
            src, tgt_in, tgt_out = (_trimmed(ids[rows], pad_id) for ids in sides)
            yield Batch(src, tgt_in, tgt_out, int((tgt_out != pad_id).sum()), self.indices[rows])

    def turned(self, *, pad_id: int, bos_id: int) -> Batch:
        """The same pairs from target to source."""
        return _batch(self.tgt_out_BT, self.src_BS, self.indices, pad_id, bos_id)


def make_batch(
    pairs: EncodedPairs,
    indices: npt.NDArray[np.int64],
    *,
    pad_id: int,
    bos_id: int,
    respell: Callable[[list[Ids]], list[Ids]] = list,
) -> Batch:
    """The batch of these pairs, whose sides end with eos; `respell` may change the subwords of its sentences."""
    srcs, tgts = respell([pairs.src(i) for i in indices]), respell([pairs.tgt(i) for i in indices])
    return _batch(pad_sequences(srcs, pad_id), pad_sequences(tgts, pad_id), indices, pad_id, bos_id)


def pad_sequences(sequences: Sequence[Sequence[int] | Ids], pad_id: int) -> Tensor:
    """An int64 tensor with one row per sequence, as wide as the longest, filled up with pad_id on the right."""
    lens = np.array([len(sequence) for sequence in sequences])
    rows = np.full((len(lens), lens.max()), pad_id, dtype=np.int64)
    rows[np.arange(lens.max()) < lens[:, None]] = np.concatenate(sequences)
    return torch.from_numpy(rows)


def prefetch(items: Iterable[Item], depth: int = 4) -> Generator[Item, None, None]:
    """The same items, up to `depth` of them prepared ahead by one background thread.

    An exception of `items` is raised here, after the items before it. Closing the iterator, or
    dropping it, ends the thread.
    """
    ready: SimpleQueue[tuple[Item] | BaseException | None] = SimpleQueue()
    slots = Semaphore(depth - 1)  # one more item is taken up before the thread waits
    is_closed = Event()

    def work() -> None:
        try:
            for item in items:
                ready.put((item,))
                slots.acquire()
                if is_closed.is_set():
                    return
            ready.put(None)
        except BaseException as error:  # whatever it is, it belongs to the consumer
            ready.put(error)

    thread = Thread(target=work, name="dragoman-prefetch", daemon=True)
    thread.start()
    try:
        while (result := ready.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            slots.release()
            yield result[0]
    finally:
        is_closed.set()
        slots.release()  # wakes the thread if it waits for room
        thread.join()


def _batch(src_BS: Tensor, tgt_BT: Tensor, indices: npt.NDArray[np.int64], pad_id: int, bos_id: int) -> Batch:
    tgt_in_BT = torch.full_like(tgt_BT, bos_id)
    tgt_in_BT[:, 1:] = tgt_BT[:, :-1]
    is_padding_BT = tgt_BT == pad_id
    tgt_in_BT[is_padding_BT] = pad_id  # where the shift has moved an eos into the padding
    n_tgt_tokens = tgt_BT.numel() - int(is_padding_BT.sum())
    return Batch(src_BS, tgt_in_BT, tgt_BT, n_tgt_tokens, indices)


def _trimmed(ids: Tensor, pad_id: int) -> Tensor:
    """The rows without the columns at their end that hold nothing but padding."""
    return ids[:, : int((ids != pad_id).sum(dim=1).max())]


def _copied(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda":
        tensor = tensor.pin_memory()  # only pinned memory can be copied while the program goes on
    return tensor.to(device, non_blocking=True)
