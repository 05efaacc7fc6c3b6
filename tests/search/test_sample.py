"""Sampling draws from the distribution it says, and from nothing else than seed, sentence and sample."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_model import BOS, EOS, PrefixModel

from dragoman.errors import ConfigError
from dragoman.search.greedy import greedy_search
from dragoman.search.sample import draw, sample_search
from dragoman.search.step import length_penalty

SEEDS = st.integers(0, 10_000)


def sample(model, sentences, max_lens, **settings):
    return sample_search(
        model,
        model.start(*sentences),
        max_lens=max_lens,
        bos_id=BOS,
        eos_id=EOS,
        length_penalty=0.6,
        indices=list(sentences),
        **settings,
    )


@given(SEEDS, st.lists(st.integers(0, 8), min_size=2, max_size=5), st.integers(1, 3), st.sampled_from([1.0, 0.8]))
@settings(deadline=None, max_examples=25)
def test_same_seed_same_draw_whatever_the_batch_and_its_order(seed, max_lens, n_samples, top_p):
    model = PrefixModel(seed, 9, eos_bias=-1.0)
    how = {"seed": seed, "n_samples": n_samples, "top_p": top_p}
    sentences = range(len(max_lens))
    together = sample(model, sentences, max_lens, **how)
    assert sample(model, sentences[::-1], max_lens[::-1], **how) == together[::-1]
    assert [sample(model, [i], [max_lens[i]], **how)[0] for i in sentences] == together


def test_seeds_sentences_and_samples_are_drawn_apart():
    model = PrefixModel(0, 50, eos_bias=-9.0)
    one = sample(model, [7, 7], [20, 20], seed=1, n_samples=2)
    assert one[0] == one[1]  # the same sentence of the input
    assert one[0][0].ids != one[0][1].ids
    other_seed = sample(model, [7], [20], seed=2)
    assert other_seed[0][0].ids not in {hypothesis.ids for hypothesis in one[0]}
    # The first sample does not depend on how many are drawn.
    assert sample(model, [7], [20], seed=1)[0][0] in one[0]


@given(SEEDS, st.lists(st.integers(0, 6), min_size=1, max_size=4), st.sampled_from([0, 2]))
@settings(deadline=None, max_examples=40)
def test_one_candidate_or_no_heat_is_greedy_search(seed, max_lens, levels):
    model = PrefixModel(seed, 6, levels=levels, holes=0.2)
    sentences = range(len(max_lens))
    greedy = greedy_search(
        model, model.start(*sentences), max_lens=max_lens, bos_id=BOS, eos_id=EOS, length_penalty=0.6
    )
    assert sample(model, sentences, max_lens, top_k=1, seed=seed) == [[best] for best in greedy]
    assert sample(model, sentences, max_lens, top_p=1e-9, seed=seed) == [[best] for best in greedy]
    if not levels:
        assert sample(model, sentences, max_lens, temperature=1e-320, seed=seed) == [[best] for best in greedy]


@given(SEEDS, st.integers(0, 6), st.floats(0.3, 3.0), st.integers(0, 4), st.floats(0.2, 1.0))
@settings(deadline=None, max_examples=60)
def test_reports_the_models_own_log_probs_best_score_first(seed, max_len, temperature, top_k, top_p):
    model = PrefixModel(seed, 6, holes=0.3)
    [found] = sample(model, [0], [max_len], temperature=temperature, top_k=top_k, top_p=top_p, seed=seed, n_samples=4)
    assert len(found) == 4
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found:
        forced = model.forced(0, hypothesis.ids)
        assert hypothesis.token_log_probs == tuple(forced)
        assert hypothesis.score == hypothesis.log_prob / length_penalty(len(forced), 0.6)
        # Only the end, forced at the limit, may be something that is never drawn.
        assert all(math.isfinite(number) for number in forced[:max_len])


def frequencies(log_probs_V, n, **how):
    """How often each token is drawn in n draws of a fixed seed."""
    uniform_N = torch.tensor(np.random.default_rng(11).random(n))
    ids = draw(log_probs_V.expand(n, -1), uniform_N, **how).tolist()
    counts = Counter(ids)
    return np.array([counts[i] / n for i in range(len(log_probs_V))])


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "kept"),
    [
        (1.0, 0, 1.0, [0, 1, 2, 3, 4]),
        (0.5, 0, 1.0, [0, 1, 2, 3, 4]),
        (2.0, 0, 1.0, [0, 1, 2, 3, 4]),
        (1.0, 3, 1.0, [1, 3, 4]),
        (1.0, 0, 0.6, [1, 3]),  # 0.4 is not enough, 0.4 + 0.3 is
        (1.0, 0, 0.75, [1, 3, 4]),  # 0.7 is not enough
        (1.0, 3, 0.75, [1, 3]),  # of the three kept, 0.7 / 0.9 is enough
        (2.0, 3, 0.75, [1, 3, 4]),  # flatter, it is not
    ],
)
def test_frequencies_are_those_of_the_stated_distribution(temperature, top_k, top_p, kept):
    probs = np.array([0.06, 0.4, 0.04, 0.3, 0.2])
    n = 20_000
    found = frequencies(torch.tensor(probs).log(), n, temperature=temperature, top_k=top_k, top_p=top_p)
    expected = np.zeros(5)
    expected[kept] = probs[kept] ** (1 / temperature)
    expected /= expected.sum()
    # Five standard deviations of a binomial share; what is cut off never comes up at all.
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / n)).all()


def test_the_ends_of_the_unit_interval_never_draw_an_impossible_token():
    log_probs_V = torch.tensor([0.0, 0.0, 0.3, 0.7, 0.0]).log()
    uniform_N = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    everything = draw(log_probs_V.expand(2, -1), uniform_N, temperature=1.0, top_k=0, top_p=1.0)
    assert everything.tolist() == [2, 3]
    ranked = draw(log_probs_V.expand(2, -1), uniform_N, temperature=1.0, top_k=5, top_p=1.0)
    assert ranked.tolist() == [3, 2]


def test_nothing_in_nothing_out():
    assert sample(PrefixModel(0, 5), [], []) == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temperature", 0.0),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("seed", -1),
        ("n_samples", 0),
    ],
)
def test_impossible_settings_are_refused_by_name_and_value(setting, value):
    with pytest.raises(ConfigError, match=f"{setting}={value}") as error:
        sample(PrefixModel(0, 5), [0], [3], **{setting: value})
    assert error.value.hint
