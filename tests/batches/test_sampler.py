"""Every pair once an epoch, in batches that fit, in an order that (seed, epoch) alone decides."""

from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.batches.sampler import BatchesConfig, epoch_batches
from dragoman.batches.store import EncodedPairs, write_store
from dragoman.errors import ConfigError

LENS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=300)
SEEDS = st.integers(0, 2**32)


def pairs_of(lens: list[tuple[int, int]], folder: Path) -> EncodedPairs:
    return write_store(folder, (([3] * src, [3] * tgt) for src, tgt in lens), 10)


def batches_of(pairs: EncodedPairs, tokens: int, seed: int, epoch: int, skip: int = 0) -> list[list[int]]:
    config = BatchesConfig(tokens=tokens)
    return [b.tolist() for b in epoch_batches(pairs, config, seed=seed, epoch=epoch, skip=skip)]


def realistic_lens(n: int) -> npt.NDArray[np.int64]:
    """Source and target lengths as correlated and as spread as those of image captions in two languages."""
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=n), rng.normal(size=(2, n))
    return np.clip(np.exp(2.7 + 0.31 * (0.93 * common + 0.37 * own)), 3, 60).astype(np.int64).T


@given(lens=LENS, tokens=st.integers(1, 400), seed=SEEDS, epoch=st.integers(0, 1000), data=st.data())
@settings(deadline=None, max_examples=100)
def test_an_epoch(
    tmp_path_factory: pytest.TempPathFactory,
    lens: list[tuple[int, int]],
    tokens: int,
    seed: int,
    epoch: int,
    data: st.DataObject,
) -> None:
    pairs = pairs_of(lens, tmp_path_factory.mktemp("stores") / "s")
    batches = batches_of(pairs, tokens, seed, epoch)
    # Every pair exactly once.
    assert sorted(i for batch in batches for i in batch) == list(range(len(lens)))
    # Padded, each side fits; only a pair too long by itself may exceed the limit.
    for batch in batches:
        longest = max(max(lens[i]) for i in batch)
        assert len(batch) * longest <= tokens or len(batch) == 1
    # The same again, and from any batch on.
    skip = data.draw(st.integers(0, len(batches) + 1))
    assert batches_of(pairs, tokens, seed, epoch, skip) == batches[skip:]


def test_several_pools(tmp_path: Path) -> None:
    """With batches this small the corpus takes many pools, each drawn from all over the corpus."""
    pairs = pairs_of([(5, 5)] * 5000, tmp_path / "s")
    batches = batches_of(pairs, tokens=10, seed=1, epoch=0)
    assert sorted(i for batch in batches for i in batch) == list(range(5000))
    first_pool = np.concatenate(batches[:100])
    assert 2000 < first_pool.mean() < 3000
    assert first_pool.min() < 200
    assert first_pool.max() > 4800


@pytest.mark.parametrize(
    ("n_pairs", "most_alike"),
    [
        (20_000, 0.02),  # several pools: what is in a pool changes
        (2_000, 0.2),  # one pool: pairs of like length meet again, only ties and cuts change
    ],
)
def test_epochs_and_seeds_differ_in_composition_and_order(tmp_path: Path, n_pairs: int, most_alike: float) -> None:
    pairs = pairs_of([tuple(lens) for lens in realistic_lens(n_pairs).tolist()], tmp_path / "s")
    drawn = [batches_of(pairs, 500, seed, epoch) for seed, epoch in [(1, 0), (1, 1), (2, 0)]]
    for a, b in combinations(drawn, 2):
        alike = {frozenset(batch) for batch in a} & {frozenset(batch) for batch in b}
        assert len(alike) < most_alike * len(a)
        assert [len(batch) for batch in a] != [len(batch) for batch in b]


def test_short_and_long_batches_are_mixed(tmp_path: Path) -> None:
    pairs = pairs_of([(n, n) for n in range(1, 51)] * 20, tmp_path / "s")
    lens = [int(pairs.tgt_lens[batch[0]]) for batch in batches_of(pairs, 500, seed=1, epoch=0)]
    assert abs(np.corrcoef(lens, range(len(lens)))[0, 1]) < 0.4


@pytest.mark.parametrize(("n_pairs", "tokens"), [(30_000, 4096), (100_000, 8192)])
def test_less_than_a_tenth_is_padding(tmp_path: Path, n_pairs: int, tokens: int) -> None:
    lens = realistic_lens(n_pairs)
    pairs = pairs_of([tuple(pair) for pair in lens.tolist()], tmp_path / "s")
    n_positions = sum(len(b) * lens[b].max(axis=0).sum() for b in batches_of(pairs, tokens, 1, 0))
    assert 1 - lens.sum() / n_positions < 0.1


def test_settings_that_fit_no_pair() -> None:
    assert BatchesConfig().tokens == 25_000
    with pytest.raises(ConfigError, match=r"batches\.tokens=0"):
        BatchesConfig(tokens=0)
    with pytest.raises(ConfigError, match=r"batches\.max_len_tokens=0"):
        BatchesConfig(max_len_tokens=0)
