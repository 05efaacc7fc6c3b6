"""Subwords that now and then fall apart, so that a model sees words spelled in more than one way.

After BPE-dropout (Provilkov et al., 2020), where merges are left out by chance while a word is put together. Here the
ids are there already: each may fall apart into the two it was merged from, and those again. The text stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.tokens.subwords import Subwords

Ids = npt.NDArray[np.integer[Any]]

_WHOLE = -1
_NEVER = 1 << 30  # later than any merge


class Unmerging:
    """Lets each subword that was merged from two fall apart with probability `p`."""

    def __init__(self, subwords: Subwords, p: float) -> None:
        self._p = p
        self._parts = _parts(subwords)

    def __call__(self, sentences: Sequence[Ids], rng: np.random.Generator) -> list[Ids]:
        """The sentences in other subwords, drawn from `rng`."""
        ids = np.concatenate(sentences)
        rows = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
        may_fall = np.ones(len(ids), dtype=bool)
        while True:
            falls = may_fall & (self._parts[ids, 0] != _WHOLE)
            falls[falls] = rng.random(np.count_nonzero(falls)) < self._p
            if not falls.any():
                return np.split(ids, np.cumsum(np.bincount(rows, minlength=len(sentences)))[:-1])
            # What falls makes place for two, which may fall again; what stood will stand.
            n_after = np.where(falls, 2, 1)
            places = (np.cumsum(n_after) - n_after)[falls]
            parts = self._parts[ids[falls]]
            ids, rows, may_fall = (np.repeat(values, n_after) for values in (ids, rows, falls))
            ids[places], ids[places + 1] = parts.T


def _parts(subwords: Subwords) -> npt.NDArray[np.int32]:
    """For every id the two it was merged from; _WHOLE twice where there are none."""
    pieces = subwords.pieces(range(subwords.vocab_size))
    ids = {piece: i for i, piece in enumerate(pieces) if i >= subwords.n_reserved}
    parts = np.full((len(pieces), 2), _WHOLE, dtype=np.int32)
    for piece, i in ids.items():
        parts[i] = _last_merge(piece, ids) or _WHOLE
    return parts


def _last_merge(piece: str, ids: dict[str, int]) -> tuple[int, int] | None:
    """The two subwords that byte-pair encoding merges last to make this one; merges learnt earlier have lower ids."""
    symbols = list(piece)
    while len(symbols) > 2:
        merges = [ids.get(left + right, _NEVER) for left, right in pairwise(symbols)]
        at = merges.index(min(merges))
        if merges[at] == _NEVER:
            return None
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    if len(symbols) == 2 and all(symbol in ids for symbol in symbols):
        return ids[symbols[0]], ids[symbols[1]]
    return None
