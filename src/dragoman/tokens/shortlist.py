"""Which subwords a translation may need, by the subwords of its source: a projection onto these is enough.

A table of the likeliest translations of every source subword, learned from parallel text by IBM model 1 (Brown et al.,
1993), as Devlin (2017) and Marian use it. No torch here: it is made while training, and read where there is none.
"""

# Letters: V vocabulary, L links (of a target token with a source token of its pair), C distinct links (cells).

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dragoman.errors import ModelError
from dragoman.tokens.subwords import BOS_ID, EOS_ID, PAD_ID, UNK_ID

Ids = npt.NDArray[np.integer[Any]]
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

# Chosen so that hardly a subword of held-out references is missing: docs/notes/0006-engines.md has the numbers.
WIDTH = 20  # translations kept of a source subword; one seen so seldom that it has no more keeps all
N_COMMON = 4000  # subwords that every sentence may use, but no more than half the vocabulary
_USUAL = 3  # times in the target text: what is rarer a model hardly learns to write
_MOST_PAIRS = 200_000  # looked at, evenly spaced
_MOST_LINKS = 8_000_000  # which bounds memory, also where sentences are long
_ROUNDS = 4  # of expectation and maximization
_NULL = PAD_ID  # what target subwords without a source come from; no source has padding

_VERSION = 2
_TENSORS = ("common", "starts", "candidates", "usual")


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
    usual: npt.NDArray[np.int64]  # ascending: what translations are made of, whatever the source

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
        """Writes a safetensors file: the same shortlist gives the same bytes."""
        tensors = {name: getattr(self, name).astype(np.int32) for name in _TENSORS}
        save_file(tensors, path, {"version": str(_VERSION)})  # several entries would come in any order

    @classmethod
    def load(cls, path: str | Path, vocab_size: int) -> Shortlist:
        """The shortlist in this file, which must be one for a vocabulary of this size."""
        remake = "delete it, or make it anew with `dragoman shortlist`"
        try:
            with safe_open(path, framework="numpy") as file:
                version = (file.metadata() or {}).get("version")
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise ModelError(f"there is no shortlist {path}", hint="make one with `dragoman shortlist`") from None
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path} cannot be read ({error})", hint=remake) from None
        if version == "1" and {"common", "candidates"} <= found.keys():  # which knew nothing of what is usual
            found["usual"], version = np.unique(np.concatenate([found["common"], found["candidates"]])), str(_VERSION)
        if version != str(_VERSION) or not _is_whole(found):
            raise ModelError(f"{path} is no shortlist that this Dragoman can read", hint=remake)
        shortlist = cls(**{name: found[name].astype(np.int64) for name in _TENSORS})
        if shortlist.vocab_size != vocab_size:
            raise ModelError(f"{path} is for {shortlist.vocab_size} subwords, the model has {vocab_size}", hint=remake)
        return shortlist


class Coverage(NamedTuple):
    """How well a shortlist serves a text."""

    share: float  # of the target subwords, 0 to 1
    n_ids: float  # on the list of a sentence, mean


def _is_whole(found: dict[str, npt.NDArray[Any]]) -> bool:
    """Whether these tensors are those of a shortlist, so that looking something up in it cannot fail."""
    if found.keys() != set(_TENSORS) or any(values.ndim != 1 or values.dtype != np.int32 for values in found.values()):
        return False
    common, starts, candidates, usual = (found[name] for name in _TENSORS)
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(candidates) or (np.diff(starts) < 0).any():
        return False
    return all(((ids >= 0) & (ids < len(starts) - 1)).all() for ids in (common, candidates, usual))


def build_shortlist(pairs: Pairs, vocab_size: int, *, width: int = WIDTH, n_common: int = N_COMMON) -> Shortlist:
    """The shortlist that this parallel text gives; of a large text, evenly spaced pairs are looked at."""
    chosen = _evenly(pairs)
    tgt, tgt_lens = _concatenated([pairs.tgt(i)[:-1] for i in chosen])  # eos has its place among the common
    n_V = np.bincount(tgt, minlength=vocab_size)
    n_V[[PAD_ID, UNK_ID, BOS_ID, EOS_ID]] = len(tgt) + 1  # before all others
    usual = np.flatnonzero(n_V >= _USUAL)
    common = np.sort(np.argsort(-n_V, kind="stable")[: min(n_common, vocab_size // 2)])
    # What is common needs no source, so most of the text is left out from here on, and little is left to count.
    is_rarer_V = np.ones(vocab_size, dtype=bool)
    is_rarer_V[common] = False
    is_rarer = is_rarer_V[tgt]
    pair_of = np.repeat(np.arange(len(chosen)), tgt_lens)[is_rarer]
    src, src_lens = _concatenated([np.concatenate([[_NULL], pairs.src(i)[:-1]]) for i in chosen])
    links = _Links.between(src, src_lens, tgt[is_rarer], pair_of)
    src_C, tgt_C, n_C = links.expected_counts(vocab_size)
    return Shortlist(common, *_likeliest(src_C, tgt_C, n_C, vocab_size, width), usual)


def coverage(shortlist: Shortlist, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Coverage:
    """How well the lists of these sources hold these targets, given as ids."""
    n_held, n_tgt, sizes = 0, 0, []
    for src, tgt in pairs:
        ids = shortlist.ids(src)
        n_held += int(np.isin(tgt, ids).sum())
        n_tgt += len(tgt)
        sizes.append(len(ids))
    return Coverage(n_held / n_tgt if n_tgt else 1.0, float(np.mean(sizes)) if sizes else 0.0)


def _evenly(pairs: Pairs) -> list[int]:
    """The numbers of the pairs that are looked at."""
    chosen: list[int] = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_PAIRS)).astype(int)).tolist()
    return chosen


def _concatenated(sentences: Sequence[Ids]) -> tuple[_Ints, _Ints]:
    """The ids of all sentences in one array, and the length of each sentence."""
    lens = np.array([len(ids) for ids in sentences], dtype=np.int64)
    return np.concatenate([*sentences, np.zeros(0, dtype=np.int64)]).astype(np.int64), lens


@dataclass(frozen=True, slots=True)
class _Links:
    """Every target token with every source token of its pair."""

    src_L: _Ints
    tgt_L: _Ints
    n_of_token: _Ints  # links of each target token, which are neighbours

    @classmethod
    def between(cls, src: _Ints, src_lens: _Ints, tgt: _Ints, pair_of: _Ints) -> _Links:
        """`pair_of` tells the pair of each target token. Where there are too many, some pairs are left out."""
        n_links = src_lens[pair_of]
        stride = -(-int(n_links.sum()) // _MOST_LINKS)
        if stride > 1:
            is_kept = pair_of % stride == 0
            tgt, pair_of, n_links = tgt[is_kept], pair_of[is_kept], n_links[is_kept]
        first_src = (np.cumsum(src_lens) - src_lens)[pair_of]
        return cls(src[np.repeat(first_src, n_links) + _place_in_run(n_links)], np.repeat(tgt, n_links), n_links)

    def expected_counts(self, vocab_size: int) -> tuple[_Ints, _Ints, _Floats]:
        """How often each source subword was translated by each target subword, by IBM model 1: src, tgt, count."""
        cells, cell_L = _distinct(self.src_L * vocab_size + self.tgt_L)
        src_C, tgt_C = np.divmod(cells, vocab_size)
        starts = np.cumsum(self.n_of_token) - self.n_of_token
        p_C: npt.NDArray[Any] = np.ones(len(cells))
        n_C = p_C
        for _ in range(_ROUNDS):
            # Each target token came from one of its sources, from each with a share of its probability ...
            share_L = p_C[cell_L]
            share_L /= np.repeat(np.add.reduceat(share_L, starts), self.n_of_token)
            # ... and the probabilities are those that these shares make likeliest.
            n_C = np.bincount(cell_L, weights=share_L, minlength=len(cells))
            p_C = n_C / np.bincount(src_C, weights=n_C, minlength=vocab_size)[src_C]
        return src_C, tgt_C, n_C


def _likeliest(src_C: Ids, tgt_C: _Ints, n_C: _Floats, vocab_size: int, width: int) -> tuple[_Ints, _Ints]:
    """Where the translations of each source subword start, and these, the likeliest first."""
    order = np.lexsort((tgt_C, -n_C, src_C))
    order = order[src_C[order] != _NULL]
    src_C, tgt_C = src_C[order], tgt_C[order]
    is_kept = _place_in_run(np.bincount(src_C, minlength=vocab_size)) < width
    n_V = np.bincount(src_C[is_kept], minlength=vocab_size)
    return np.concatenate([[0], np.cumsum(n_V)]), tgt_C[is_kept]


def _distinct(keys: _Ints) -> tuple[_Ints, npt.NDArray[np.int32]]:
    """The distinct keys, ascending, and where each key is among them: `np.unique`, several times as fast."""
    n_bits = len(keys).bit_length()
    assert int(keys.max(initial=0)).bit_length() + n_bits < 64
    both = np.sort((keys << n_bits) | np.arange(len(keys)))  # plain numbers sort faster than their places
    places, both = both & ((1 << n_bits) - 1), both >> n_bits
    is_new = np.diff(both, prepend=-1) != 0
    where = np.empty(len(keys), dtype=np.int32)
    where[places] = np.cumsum(is_new) - 1
    return both[is_new], where


def _place_in_run(lens: _Ints) -> _Ints:
    """0, 1, … for each run: [2, 3] gives [0, 1, 0, 1, 2]."""
    return np.arange(lens.sum()) - np.repeat(np.cumsum(lens) - lens, lens)
