"""Beam search against its definition, written out for one sentence, and against exhaustive search."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_model import BOS, EOS, PrefixModel

from dragoman.errors import ConfigError
from dragoman.search.beam import beam_search
from dragoman.search.greedy import greedy_search
from dragoman.search.step import Hypothesis, length_penalty

SEEDS = st.integers(0, 10_000)
ALPHAS = st.one_of(st.sampled_from([0.0, 0.6, 1.0]), st.floats(-3, 3))


@st.composite
def models(draw):
    return PrefixModel(
        draw(SEEDS),
        draw(st.integers(2, 12)),
        holes=draw(st.sampled_from([0.0, 0.0, 0.4])),
        eos_bias=draw(st.sampled_from([-4.0, -1.0, 0.0, 2.0])),
        levels=draw(st.sampled_from([0, 0, 0, 2])),
        scale=draw(st.sampled_from([1.0, 2.0, 8.0])),
    )


def search(model, sentences, max_lens, *, beam, alpha=0.6, nbest=1):
    return beam_search(
        model,
        model.start(*sentences),
        max_lens=max_lens,
        bos_id=BOS,
        eos_id=EOS,
        beam=beam,
        length_penalty=alpha,
        nbest=nbest,
    )


def reference(model, sentence, max_len, *, beam, alpha, nbest):
    """The definition in `beam.py`, points 1 to 4, with no other way to stop."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[Hypothesis] = []
    while True:
        is_full = len(live[0][1]) == max_len
        candidates = []
        for log_prob, ids in live:
            row = model.log_probs(sentence, (BOS, *ids))
            for token in [EOS] if is_full else range(model.vocab_size):
                candidates.append((log_prob + float(row[token]), (*ids, token)))
        candidates.sort(key=lambda candidate: -candidate[0])  # stable: hypothesis, then token
        for log_prob, ids in candidates[:beam]:
            if ids[-1] == EOS and log_prob > -math.inf:
                finished.append(Hypothesis.of(ids[:-1], model.forced(sentence, ids[:-1]), alpha))
        if is_full and not finished:
            ids = candidates[0][1][:-1]
            finished.append(Hypothesis.of(ids, model.forced(sentence, ids), alpha))
        if is_full or len(finished) >= beam:
            return sorted(finished, key=lambda hypothesis: -hypothesis.score)[:nbest]
        live = [candidate for candidate in candidates if candidate[1][-1] != EOS][:beam]


@given(models(), st.integers(0, 8), st.integers(1, 5), ALPHAS, st.data())
@settings(deadline=None, max_examples=250)
def test_equals_the_definition_without_early_termination(model, max_len, beam, alpha, data):
    nbest = data.draw(st.integers(1, beam))
    found = search(model, [0], [max_len], beam=beam, alpha=alpha, nbest=nbest)
    assert found == [reference(model, 0, max_len, beam=beam, alpha=alpha, nbest=nbest)]


@pytest.mark.parametrize(
    ("alpha", "first_eos", "n_tokens"),
    [
        (2.0, 0.6, 10),  # the penalty at the length limit raises -0.92 over the -0.51 of stopping at once
        (-2.0, 0.3, 1),  # the penalty of the next step does; the one at the limit would be out of reach
    ],
)
def test_a_live_hypothesis_that_can_still_win_is_kept(alpha, first_eos, n_tokens):
    def step(last_ids_N, state, /):
        eos = first_eos if last_ids_N[0] == BOS else float(len(steps) == n_tokens)
        steps.append(len(last_ids_N))
        return torch.tensor([[0.0, eos, 1 - eos]]).log().repeat(len(last_ids_N), 1), state

    steps: list[int] = []
    [[best]] = beam_search(
        step,
        PrefixModel(0, 3).start(0),
        max_lens=[10],
        bos_id=BOS,
        eos_id=EOS,
        beam=2,
        length_penalty=alpha,
    )
    assert best.ids == (2,) * n_tokens


def test_a_search_that_cannot_improve_ends():
    n_rows = []

    class Watched(PrefixModel):
        def __call__(self, last_ids_N, state, /):
            n_rows.append(len(last_ids_N))
            return super().__call__(last_ids_N, state)

    model = Watched(3, 50, eos_bias=12.0)
    found = search(model, [0], [40], beam=4)
    assert found == [reference(model, 0, 40, beam=4, alpha=0.6, nbest=1)]
    assert n_rows == [1]
    search(model, [0], [40], beam=4, nbest=4)
    assert n_rows == [1, 1, 4]  # three more are wanted, and four end in the second step


@given(models(), st.lists(st.integers(0, 7), min_size=1, max_size=5), ALPHAS)
@settings(deadline=None, max_examples=100)
def test_a_beam_of_one_is_greedy_search_for_every_alpha(model, max_lens, alpha):
    sentences = range(len(max_lens))
    greedy = greedy_search(
        model, model.start(*sentences), max_lens=max_lens, bos_id=BOS, eos_id=EOS, length_penalty=alpha
    )
    assert search(model, sentences, max_lens, beam=1, alpha=alpha) == [[best] for best in greedy]


@given(SEEDS, st.integers(3, 5), st.integers(0, 4), ALPHAS, st.sampled_from([0.0, 0.4]))
@settings(deadline=None, max_examples=40)
def test_a_wide_beam_is_exhaustive_search(seed, vocab_size, max_len, alpha, holes):
    model = PrefixModel(seed, vocab_size, holes=holes)
    others = [token for token in range(vocab_size) if token != EOS]
    sequences = [ids for n in range(max_len + 1) for ids in itertools.product(others, repeat=n)]
    every = [Hypothesis.of(ids, model.forced(0, ids), alpha) for ids in sequences]
    possible = [hypothesis for hypothesis in every if hypothesis.log_prob > -math.inf]
    possible.sort(key=lambda hypothesis: -hypothesis.score)
    [found] = search(model, [0], [max_len], beam=len(every), alpha=alpha, nbest=len(every))
    if possible:
        # Equal scores have no order of their own here, and alpha can make them equal.
        assert [hypothesis.score for hypothesis in found] == [hypothesis.score for hypothesis in possible]
        assert set(found) == set(possible)
    else:
        assert [hypothesis.log_prob for hypothesis in found] == [-math.inf]


@given(models(), st.lists(st.integers(0, 8), min_size=2, max_size=6), st.integers(1, 4), ALPHAS)
@settings(deadline=None, max_examples=100)
def test_batch_mates_change_nothing(model, max_lens, beam, alpha):
    together = search(model, range(len(max_lens)), max_lens, beam=beam, alpha=alpha, nbest=beam)
    alone = [
        search(model, [sentence], [max_len], beam=beam, alpha=alpha, nbest=beam)[0]
        for sentence, max_len in enumerate(max_lens)
    ]
    assert together == alone


@given(models(), st.integers(0, 8), st.integers(1, 5), ALPHAS)
@settings(deadline=None, max_examples=100)
def test_scores_are_forced_decoding_scores_and_the_nbest_are_distinct_and_sorted(model, max_len, beam, alpha):
    [found] = search(model, [0], [max_len], beam=beam, alpha=alpha, nbest=beam)
    assert found
    assert len({hypothesis.ids for hypothesis in found}) == len(found)
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found:
        forced = model.forced(0, hypothesis.ids)
        assert len(hypothesis.ids) <= max_len
        assert hypothesis.token_log_probs == tuple(forced)
        assert hypothesis.log_prob == pytest.approx(math.fsum(forced), rel=1e-12)
        assert hypothesis.score == hypothesis.log_prob / length_penalty(len(forced), alpha)


@given(SEEDS, ALPHAS, ALPHAS)
@settings(deadline=None, max_examples=40)
def test_a_larger_alpha_never_makes_the_best_output_shorter(seed, low, high):
    model = PrefixModel(seed, 4, eos_bias=-1.0)
    n_sequences = sum(3**n for n in range(5))
    lengths = [len(search(model, [0], [4], beam=n_sequences, alpha=alpha)[0][0].ids) for alpha in sorted([low, high])]
    assert lengths == sorted(lengths)


def test_finished_sentences_leave_the_batch():
    sizes = []

    class Watched(PrefixModel):
        def __call__(self, last_ids_N, state, /):
            sizes.append(len(last_ids_N))
            return super().__call__(last_ids_N, state)

    search(Watched(1, 6, eos_bias=-50.0), range(3), [0, 2, 4], beam=2)
    assert sizes == [3, 4, 4, 2, 2]


def test_eos_ruled_out_until_the_limit_still_gives_an_answer():
    def never_ends(last_ids_N, state, /):
        log_probs_NV = torch.full((len(last_ids_N), 3), -math.log(2))
        log_probs_NV[:, EOS] = -math.inf
        return log_probs_NV, state

    state = PrefixModel(0, 3).start(0)
    [found] = beam_search(never_ends, state, max_lens=[2], bos_id=BOS, eos_id=EOS, beam=2, length_penalty=0.6, nbest=2)
    [hypothesis] = found
    assert (hypothesis.ids, hypothesis.log_prob, hypothesis.score) == ((0, 0), -math.inf, -math.inf)


def test_single_precision_is_added_up_in_double():
    def step(last_ids_N, state, /):
        return torch.log_softmax(torch.arange(40.0).sin().repeat(len(last_ids_N), 1), dim=1), state

    state = PrefixModel(0, 40).start(0)
    [[best]] = beam_search(step, state, max_lens=[30], bos_id=BOS, eos_id=EOS, beam=4, length_penalty=2.0)
    assert best.log_prob == pytest.approx(math.fsum(best.token_log_probs), rel=1e-14)


def test_nothing_in_nothing_out():
    assert search(PrefixModel(0, 5), [], [], beam=4) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam": 2, "nbest": 3}, "nbest=3 does not fit a beam of 2"),
        ({"beam": 2, "nbest": 0}, "nbest=0"),
        ({"beam": 0}, "beam=0"),
        ({"beam": 2, "alpha": math.inf}, "length_penalty=inf"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        search(PrefixModel(0, 5), [0], [3], **settings)
    assert error.value.hint
