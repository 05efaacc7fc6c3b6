"""Which pairs go together in a batch: of similar length, in an order drawn from (seed, epoch) alone.

Nothing here grows with the corpus: the shuffle is computed index by index instead of being stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from dragoman.batches.store import EncodedPairs
from dragoman.errors import ConfigError

_BATCHES_PER_POOL = 100  # more would waste less on padding, fewer would mix lengths better
_N_ROUNDS = 4  # of the Feistel network; four are enough to look random (Luby and Rackoff, 1988)

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig:
    """Defaults are the paper's (section 5.1): about 25 000 source and 25 000 target tokens a batch."""

    tokens: int = 25_000  # on each side, padding included: rows * longest row
    max_len_tokens: int = 256  # a pair with a longer side is left out

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigError(f"batches.tokens={self.tokens} holds no pair", hint="use 4096, for example")
        if self.max_len_tokens < 1:
            raise ConfigError(f"batches.max_len_tokens={self.max_len_tokens} leaves no pair", hint="256 is usual")


def epoch_batches(
    pairs: EncodedPairs, config: BatchesConfig, *, seed: int, epoch: int, skip: int = 0
) -> Iterator[Indices]:
    """Batches of pair indices that together visit every pair once; the first `skip` are passed over.

    Pairs are drawn in shuffled order into pools, sorted by length within a pool, cut into batches by
    padded size, and the batches of a pool come in shuffled order. A pair longer than `config.tokens`
    makes a batch of its own.
    """
    return islice(_epoch(pairs, config.tokens, seed, epoch), skip, None)


def _epoch(pairs: EncodedPairs, tokens: int, seed: int, epoch: int) -> Iterator[Indices]:
    n = len(pairs)
    keys = np.random.SeedSequence([seed, epoch]).generate_state(_N_ROUNDS, np.uint64).astype(np.uint64)
    n_pools = max(1, round(pairs.n_ids / 2 / (_BATCHES_PER_POOL * tokens)))
    for pool in range(n_pools):
        positions = np.arange(n * pool // n_pools, n * (pool + 1) // n_pools, dtype=np.uint64)
        indices = _shuffled(positions, n, keys)
        rng = np.random.default_rng([seed, epoch, pool])
        batches = _cut(indices, pairs.src_lens[indices], pairs.tgt_lens[indices], tokens, rng)
        for b in rng.permutation(len(batches)):
            yield batches[b]


def _cut(
    indices: Indices,
    src_lens: npt.NDArray[np.uint32],
    tgt_lens: npt.NDArray[np.uint32],
    tokens: int,
    rng: np.random.Generator,
) -> list[Indices]:
    """The pool, sorted by length, in pieces of at most `tokens` padded positions on each side."""
    order = np.lexsort((_back_and_forth(src_lens, tgt_lens), tgt_lens))
    indices, src_lens, tgt_lens = indices[order], src_lens[order], tgt_lens[order]
    batches = []
    start = 0
    while start < len(indices):
        # Rows are at least as long as the first, so no more than this many can fit.
        most = max(1, tokens // max(1, int(tgt_lens[start])))
        window = slice(start, start + most)
        longest = np.maximum(np.maximum.accumulate(src_lens[window]), tgt_lens[window]).astype(np.int64)
        n_rows = np.arange(1, len(longest) + 1)
        n_fit = max(1, int(np.count_nonzero(n_rows * longest <= tokens)))
        if start == 0:
            # Moves all cuts after it: a corpus of one pool would else be cut alike in every epoch.
            n_fit = int(rng.integers(1, n_fit, endpoint=True))
        batches.append(indices[start : start + n_fit])
        start += n_fit
    return batches


def _back_and_forth(src_lens: npt.NDArray[np.uint32], tgt_lens: npt.NDArray[np.uint32]) -> Indices:
    """A key that sorts src up within even tgt lengths and down within odd ones.

    Neighbours then stay alike where the tgt length changes, which saves padding.
    """
    up = src_lens.astype(np.int64)
    return np.where(tgt_lens % 2 == 0, up, -up)


def _shuffled(positions: npt.NDArray[np.uint64], n: int, keys: npt.NDArray[np.uint64]) -> Indices:
    """Where a pseudo-random permutation of range(n), chosen by the keys, sends these positions.

    A Feistel network permutes the smallest square power of two that holds n; a value that lands
    outside range(n) is sent on until it lands inside, which keeps it a permutation.
    """
    half_bits = np.uint64(max(1, ((n - 1).bit_length() + 1) // 2))
    values = _feistel(positions, half_bits, keys)
    while (outside := values >= n).any():
        values[outside] = _feistel(values[outside], half_bits, keys)
    return values.astype(np.int64)


def _feistel(
    values: npt.NDArray[np.uint64], half_bits: np.uint64, keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """A permutation of the numbers of 2 * half_bits bits; each round mixes one half into the other."""
    mask = (np.uint64(1) << half_bits) - np.uint64(1)
    left, right = values >> half_bits, values & mask
    for key in keys:
        mixed = (right ^ key) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
    joined: npt.NDArray[np.uint64] = (left << half_bits) | right
    return joined
