"""The shortlist: it holds what translations need, is small, always the same, and refuses files that do not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from dragoman.errors import ModelError
from dragoman.tokens import shortlist as module
from dragoman.tokens.shortlist import Shortlist, build_shortlist, coverage
from dragoman.tokens.subwords import BOS_ID, EOS_ID, PAD_ID, UNK_ID

VOCAB_SIZE = 1000
SPECIALS = {PAD_ID, UNK_ID, BOS_ID, EOS_ID}


@dataclass(frozen=True)
class Text:
    """Encoded pairs in memory."""

    pairs: list[tuple[list[int], list[int]]]  # without eos

    def __len__(self) -> int:
        return len(self.pairs)

    def src(self, i: int) -> np.ndarray:
        return np.array([*self.pairs[i][0], EOS_ID], dtype=np.uint16)

    def tgt(self, i: int) -> np.ndarray:
        return np.array([*self.pairs[i][1], EOS_ID], dtype=np.uint16)


def text(n_pairs: int, seed: int = 0) -> Text:
    """Word 100 + n becomes 600 + n, in another order; 500 stands in every target and comes from nothing."""
    rng = np.random.default_rng(seed)
    words = [rng.integers(0, 200, size=rng.integers(2, 9)).tolist() for _ in range(n_pairs)]
    return Text([([100 + n for n in some], [500, *(600 + n for n in sorted(some))]) for some in words])


@pytest.fixture(scope="module")
def made() -> Shortlist:
    return build_shortlist(text(2000), VOCAB_SIZE, width=3, n_common=5)


def test_a_list_holds_the_common_the_translations_and_the_source_itself(made: Shortlist) -> None:
    assert set(made.common.tolist()) == SPECIALS | {500}
    ids = made.ids([100, 142, EOS_ID])
    assert ids.dtype == np.int64
    assert (np.diff(ids) > 0).all()
    assert {*SPECIALS, 500, 100, 142, 600, 642} <= set(ids.tolist())
    assert len(ids) <= 5 + 2 + 2 * 3
    assert made.ids([]).tolist() == made.common.tolist()


def test_the_likeliest_translation_comes_first(made: Shortlist) -> None:
    """By counting alone it would not be told from its neighbours: model 1 has explained those by their own sources."""
    first = [made.candidates[made.starts[src]] for src in range(100, 300)]
    assert first == list(range(600, 800))


def test_several_sentences_together_need_what_each_of_them_needs(made: Shortlist) -> None:
    sentences = [[100, 101], [200], [101, 299]]
    together = made.ids([i for sentence in sentences for i in sentence])
    assert together.tolist() == sorted(set().union(*(made.ids(sentence).tolist() for sentence in sentences)))


def test_a_subword_seen_once_keeps_all_it_was_seen_with() -> None:
    seen = text(500)
    once = Text([*seen.pairs, ([900], list(range(950, 960)))])
    made = build_shortlist(once, VOCAB_SIZE, width=20, n_common=10)
    assert set(range(950, 960)) <= set(made.ids([900]).tolist())


def test_no_source_has_more_translations_than_the_width(made: Shortlist) -> None:
    n_V = np.diff(made.starts)
    assert n_V.max() == 3
    assert n_V[:100].sum() == 0, "neither padding, which stands for no source, nor what was never seen"
    assert not np.isin(made.candidates, made.common).any(), "the common would only take their places"


def test_at_most_half_of_the_vocabulary_is_common() -> None:
    assert len(build_shortlist(text(20), VOCAB_SIZE).common) == VOCAB_SIZE // 2


@pytest.mark.parametrize("pairs", [[([], [])], [([], [700])], [([100], [])], [([100], [600])]])
def test_texts_with_hardly_anything_in_them(pairs: list[tuple[list[int], list[int]]]) -> None:
    made = build_shortlist(Text(pairs), VOCAB_SIZE, n_common=4)
    assert set(made.ids([100]).tolist()) >= SPECIALS


def test_too_many_links_leave_out_pairs_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    many = text(2000)
    whole = build_shortlist(many, VOCAB_SIZE, width=3, n_common=5)
    monkeypatch.setattr(module, "_MOST_LINKS", 20_000)  # of some 70,000
    some = build_shortlist(many, VOCAB_SIZE, width=3, n_common=5)
    assert some.candidates.tolist() != whole.candidates.tolist()
    assert coverage(some, text(200, seed=1).pairs).share > 0.99
    monkeypatch.setattr(module, "_MOST_PAIRS", 500)
    assert coverage(build_shortlist(many, VOCAB_SIZE, width=3, n_common=5), many.pairs).share > 0.99


@given(
    st.lists(
        st.tuples(*[st.lists(st.integers(4, 29), max_size=5)] * 2),
        min_size=1,
        max_size=8,
    )
)
@settings(deadline=None, max_examples=60)
def test_the_counts_are_those_of_model_1_written_out(pairs: list[tuple[list[int], list[int]]]) -> None:
    """The textbook's loops, with probabilities in a dictionary."""
    p: dict[tuple[int, int], float] = {}
    for n_round in range(module._ROUNDS):
        counts: dict[tuple[int, int], float] = {}
        for src, tgt in pairs:
            for t in tgt:
                shares = [1.0 if n_round == 0 else p[s, t] for s in (PAD_ID, *src)]
                for s, share in zip((PAD_ID, *src), shares, strict=True):
                    counts[s, t] = counts.get((s, t), 0.0) + share / sum(shares)
        totals = {s: sum(n for (other, _), n in counts.items() if other == s) for s, _ in counts}
        p = {(s, t): n / totals[s] for (s, t), n in counts.items()}

    src_lens = np.array([len(src) + 1 for src, _ in pairs])
    src = np.array([i for src, _ in pairs for i in (PAD_ID, *src)])
    tgt = np.array([i for _, tgt in pairs for i in tgt], dtype=np.int64)
    pair_of = np.repeat(np.arange(len(pairs)), [len(tgt) for _, tgt in pairs])
    src_C, tgt_C, n_C = module._Links.between(src, src_lens, tgt, pair_of).expected_counts(30)
    found = dict(zip(zip(src_C.tolist(), tgt_C.tolist(), strict=True), n_C.tolist(), strict=True))
    assert found == pytest.approx(counts, rel=1e-9)


def test_coverage_counts_subwords_and_the_length_of_lists(made: Shortlist) -> None:
    """605 has no source here, and 990 was never seen."""
    pairs = [([100, 101, 190], [500, 600, 601, 605]), ([102], [602, 990, 990, 500])]
    found = coverage(made, pairs)
    assert found.share == 5 / 8
    assert found.n_ids == (len(made.ids(pairs[0][0])) + len(made.ids([102]))) / 2
    assert coverage(made, []).share == 1


def test_what_is_saved_is_loaded_and_always_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.safetensors" for i in range(8)]
    for path in paths:
        build_shortlist(text(300), VOCAB_SIZE).save(path)
    assert len({path.read_bytes() for path in paths}) == 1
    saved, loaded = build_shortlist(text(300), VOCAB_SIZE), Shortlist.load(paths[0], VOCAB_SIZE)
    assert loaded.ids([100, 200]).tolist() == saved.ids([100, 200]).tolist()
    assert loaded.candidates.tolist() == saved.candidates.tolist()


def test_a_shortlist_for_another_vocabulary_is_refused(made: Shortlist, tmp_path: Path) -> None:
    made.save(tmp_path / "s")
    with pytest.raises(ModelError, match="is for 1000 subwords, the model has 8000") as caught:
        Shortlist.load(tmp_path / "s", 8000)
    assert "dragoman shortlist" in str(caught.value.hint)


def test_a_file_that_is_missing_or_cut_short_is_refused(made: Shortlist, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no shortlist"):
        Shortlist.load(tmp_path / "s", VOCAB_SIZE)
    made.save(tmp_path / "s")
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-10])
    with pytest.raises(ModelError, match="cannot be read"):
        Shortlist.load(tmp_path / "s", VOCAB_SIZE)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("common", [VOCAB_SIZE]), ("common", [-1]), ("common", [1.0]), ("common", [[1]]), ("starts", []),
        ("starts", [0] * VOCAB_SIZE + [9]), ("starts", [5] + [0] * VOCAB_SIZE), ("other", [1]),
        ("usual", [VOCAB_SIZE]),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_looked_up_are_refused(
    made: Shortlist, tmp_path: Path, name: str, values: list[object]
) -> None:
    """Otherwise a damaged file would show up as a crash, or a strange translation, much later."""
    path = tmp_path / "s"
    replace(made, candidates=made.candidates[:0], starts=np.zeros(VOCAB_SIZE + 1, dtype=np.int64)).save(path)
    Shortlist.load(path, VOCAB_SIZE)
    array = np.array(values)
    tensors = load_file(path) | {name: array.astype(np.int32) if array.dtype != float or not values else array}
    save_file(tensors, path, {"version": "2"})
    with pytest.raises(ModelError, match="is no shortlist that this Dragoman can read"):
        Shortlist.load(path, VOCAB_SIZE)


def test_a_file_of_a_later_version_is_refused(made: Shortlist, tmp_path: Path) -> None:
    made.save(tmp_path / "s")
    save_file(load_file(tmp_path / "s"), tmp_path / "s", {"version": "3"})
    with pytest.raises(ModelError, match="is no shortlist that this Dragoman can read"):
        Shortlist.load(tmp_path / "s", VOCAB_SIZE)


def test_what_occurs_three_times_is_usual_and_rarer_subwords_are_not() -> None:
    text = Text([([100], [600, 601]), ([101], [600, 601, 602]), ([102], [600])])
    assert build_shortlist(text, VOCAB_SIZE).usual.tolist() == sorted({*SPECIALS, 600})


def test_in_a_file_of_the_first_version_all_that_is_listed_is_usual(made: Shortlist, tmp_path: Path) -> None:
    made.save(tmp_path / "s")
    tensors = load_file(tmp_path / "s")
    del tensors["usual"]
    save_file(tensors, tmp_path / "s", {"version": "1"})
    found = Shortlist.load(tmp_path / "s", VOCAB_SIZE)
    assert found.usual.tolist() == sorted({*made.common.tolist(), *made.candidates.tolist()})
    assert found.ids([100, 142]).tolist() == made.ids([100, 142]).tolist()
