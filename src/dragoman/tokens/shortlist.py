"""Which subwords a translation may need, by the subwords of its source: a projection onto these is enough.

A table of the likeliest translations of every source subword, learned from parallel text by IBM model 1 (Brown et al.,
1993), as Devlin (2017) and Marian use it. No torch here: it is made while training, and read where there is none.
"""

# Letters: V vocabulary, L links (a target token with one source token of its pair), N subwords with NULL among them.

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dragoman.errors import ModelError
from dragoman.tokens.subwords import BOS_ID, EOS_ID, PAD_ID, UNK_ID

Ids = npt.NDArray[np.integer[Any]]

WIDTH = 100  # translations kept of a source subword
N_COMMON = 1000  # subwords that every sentence may use
_MOST_PAIRS = 100_000  # looked at, evenly spaced
_MOST_LINKS = 8_000_000  # which bounds memory, also where sentences are long
_ROUNDS = 4  # of expectation and maximization
_NULL = PAD_ID  # what target subwords without a source come from; no source has padding

_VERSION = 1
_TENSORS = ("common", "starts", "candidates")


class Pairs(Protocol):
    """Encoded pairs with eos at the end of both sides, as `batches.store.EncodedPairs` has them."""

    def __len__(self) -> int: ...

    def src(self, i: int) -> Ids: ...

    def tgt(self, i: int) -> Ids: ...


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The target subwords that are likely for a source."""

    common: npt.NDArray[np.int64]  # those for any source
    starts: npt.NDArray[np.int64]  # of each source subword's translations among the candidates; one more at the end
    candidates: npt.NDArray[np.int64]

    @property
    def vocab_size(self) -> int:
        return len(self.starts) - 1

    def ids(self, src_ids: Sequence[int] | Ids) -> npt.NDArray[np.int64]:
        """What a translation of these may use, ascending: the common, their translations, and they themselves.

        For several sentences together: the ids of one after those of the other.
        """
        is_wanted_V = np.zeros(self.vocab_size, dtype=bool)
        is_wanted_V[self.common] = True
        for i in set(np.asarray(src_ids).tolist()):
            is_wanted_V[i] = True  # a name is copied
            is_wanted_V[self.candidates[self.starts[i] : self.starts[i + 1]]] = True
        return np.flatnonzero(is_wanted_V)

    def save(self, path: str | Path) -> None:
        """Writes a safetensors file; one that exists is replaced in one instant."""
        path = Path(path)
        part = path.with_name(f".{path.name}.part")
        tensors = {name: getattr(self, name).astype(np.int32) for name in _TENSORS}
        save_file(tensors, part, {"format": "dragoman", "version": str(_VERSION)})
        os.replace(part, path)

    @classmethod
    def load(cls, path: str | Path, vocab_size: int) -> Shortlist:
        """The shortlist in this file, which must be one for a vocabulary of this size."""
        remake = "delete it, or make it anew: dragoman shortlist"
        try:
            with safe_open(path, framework="numpy") as file:
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise ModelError(f"there is no shortlist {path}", hint="make one: dragoman shortlist") from None
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path} cannot be read ({error})", hint=remake) from None
        if not _is_whole(found):
            raise ModelError(f"{path} is no shortlist", hint=remake)
        shortlist = cls(**{name: found[name].astype(np.int64) for name in _TENSORS})
        if shortlist.vocab_size != vocab_size:
            raise ModelError(f"{path} is for {shortlist.vocab_size} subwords, the model has {vocab_size}", hint=remake)
        return shortlist


def _is_whole(found: dict[str, npt.NDArray[Any]]) -> bool:
    """Whether these tensors are those of a shortlist, so that looking something up in it cannot fail."""
    if found.keys() != set(_TENSORS) or any(values.ndim != 1 or values.dtype != np.int32 for values in found.values()):
        return False
    common, starts, candidates = (found[name] for name in _TENSORS)
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(candidates) or (np.diff(starts) < 0).any():
        return False
    return all(((0 <= ids) & (ids < len(starts) - 1)).all() for ids in (common, candidates))


def build_shortlist(pairs: Pairs, vocab_size: int, *, width: int = WIDTH, n_common: int = N_COMMON) -> Shortlist:
    """The shortlist that this parallel text gives; of a large text, evenly spaced pairs are looked at."""
    src, src_lens, tgt, tgt_lens = _tokens(pairs)
    n_V = np.bincount(tgt, minlength=vocab_size)
    n_V[[PAD_ID, UNK_ID, BOS_ID, EOS_ID]] = n_V.max() + 1
    common = np.sort(np.argsort(-n_V, kind="stable")[:n_common])
    src_N, tgt_N, counts = _expected_counts(src, src_lens, tgt, tgt_lens, vocab_size)
    is_common_V = np.zeros(vocab_size, dtype=bool)
    is_common_V[common] = True
    is_of_use = ~is_common_V[tgt_N] & (src_N != _NULL)
    src_N, tgt_N, counts = src_N[is_of_use], tgt_N[is_of_use], counts[is_of_use]
    by_count = np.lexsort((tgt_N, -counts, src_N))
    src_N, tgt_N = src_N[by_count], tgt_N[by_count]
    is_kept = _place_in_run(np.bincount(src_N, minlength=vocab_size)) < width
    starts = np.concatenate([[0], np.cumsum(np.bincount(src_N[is_kept], minlength=vocab_size))])
    return Shortlist(common, starts, tgt_N[is_kept])


def _tokens(pairs: Pairs) -> tuple[Ids, Ids, Ids, Ids]:
    """The source and target ids of the pairs that are looked at, one after another, and the length of each."""
    chosen = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_PAIRS)).astype(np.int64)).tolist()
    null = np.array([_NULL])
    while True:
        # Without eos, which has its place among the common; NULL comes first.
        src = [np.concatenate([null, pairs.src(i)[:-1]]) for i in chosen]
        tgt = [pairs.tgt(i)[:-1] for i in chosen]
        src_lens, tgt_lens = (np.array([len(ids) for ids in side], dtype=np.int64) for side in (src, tgt))
        n_links = int((src_lens * tgt_lens).sum())
        if n_links <= _MOST_LINKS or len(chosen) == 1:
            return np.concatenate(src).astype(np.int64), src_lens, np.concatenate(tgt).astype(np.int64), tgt_lens
        chosen = chosen[:: -(-n_links // _MOST_LINKS)]


def _expected_counts(
    src: Ids, src_lens: Ids, tgt: Ids, tgt_lens: Ids, vocab_size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """How often each source subword was translated by each target subword, by IBM model 1: src, tgt, count."""
    n_links = np.repeat(src_lens, tgt_lens)  # of each target token, one after another
    first_src = np.repeat(np.cumsum(src_lens) - src_lens, tgt_lens)
    src_L = src[np.repeat(first_src, n_links) + _place_in_run(n_links)]
    cells, cell_L = _distinct(src_L * vocab_size + np.repeat(tgt, n_links))
    src_N, tgt_N = np.divmod(cells, vocab_size)
    starts = np.cumsum(n_links) - n_links
    p_N = np.ones(len(cells))
    counts = p_N
    for _ in range(_ROUNDS):
        share_L = p_N[cell_L]
        share_L /= np.repeat(np.add.reduceat(share_L, starts), n_links)
        counts = np.bincount(cell_L, weights=share_L, minlength=len(cells))
        p_N = counts / np.bincount(src_N, weights=counts, minlength=vocab_size)[src_N]
    return src_N, tgt_N, counts


def _distinct(keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The distinct keys, ascending, and where each key is among them: `np.unique`, several times as fast."""
    n_bits = int(len(keys)).bit_length()
    assert int(keys.max(initial=0)).bit_length() + n_bits < 64
    both = np.sort((keys << n_bits) | np.arange(len(keys)))  # plain numbers sort faster than their places
    places, both = both & ((1 << n_bits) - 1), both >> n_bits
    is_new = np.diff(both, prepend=-1) != 0
    where = np.empty(len(keys), dtype=np.int32)
    where[places] = np.cumsum(is_new) - 1
    return both[is_new], where


def _place_in_run(lens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, … for each run: [2, 3] gives [0, 1, 0, 1, 2]."""
    return np.arange(lens.sum()) - np.repeat(np.cumsum(lens) - lens, lens)
