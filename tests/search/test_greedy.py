"""Greedy search takes the most probable token, ends in time, and reports forced-decoding scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_model import BOS, EOS, PrefixModel

from dragoman.errors import ConfigError
from dragoman.search.greedy import greedy_search
from dragoman.search.step import length_penalty


def search(model, sentences, max_lens, alpha=0.6):
    return greedy_search(
        model, model.start(*sentences), max_lens=max_lens, bos_id=BOS, eos_id=EOS, length_penalty=alpha
    )


@given(
    seed=st.integers(0, 10_000),
    holes=st.sampled_from([0.0, 0.5]),
    levels=st.sampled_from([0, 2]),
    max_lens=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    alpha=st.floats(-2, 2),
)
@settings(deadline=None, max_examples=60)
def test_each_token_is_the_most_probable_one(seed, holes, levels, max_lens, alpha):
    model = PrefixModel(seed, 5, holes=holes, levels=levels, eos_bias=-1.0)
    found = search(model, range(len(max_lens)), max_lens, alpha)
    for sentence, (hypothesis, max_len) in enumerate(zip(found, max_lens, strict=True)):
        ids: tuple[int, ...] = ()
        while len(ids) < max_len:
            best = int(np.argmax(model.log_probs(sentence, (BOS, *ids))))
            if best == EOS:
                break
            ids = (*ids, best)
        forced = model.forced(sentence, ids)
        assert hypothesis.ids == ids
        assert hypothesis.token_log_probs == tuple(forced)
        assert hypothesis.log_prob == pytest.approx(math.fsum(forced), rel=1e-12)
        assert hypothesis.score == hypothesis.log_prob / length_penalty(len(ids) + 1, alpha)


def test_nothing_in_nothing_out():
    assert search(PrefixModel(0, 5), [], []) == []


def test_impossible_penalty_is_refused():
    with pytest.raises(ConfigError, match="length_penalty"):
        search(PrefixModel(0, 5), [0], [3], alpha=math.nan)
