"""Searches that may not go everywhere, against exhaustive search over what is left."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from prefix_model import BOS, EOS, PrefixModel

from dragoman.errors import ConfigError
from dragoman.search.beam import beam_search
from dragoman.search.constrain import Path, constrained
from dragoman.search.greedy import greedy_search
from dragoman.search.sample import sample_search
from dragoman.search.step import Constraints, Hypothesis, length_penalty

LIMITS = {"bos_id": BOS, "eos_id": EOS, "length_penalty": 0.6}
N_IDS, MAX_LEN = 4, 4


def search(model: PrefixModel, constraints: Constraints, n_sentences: int, beam: int) -> list[list[Hypothesis]]:
    state = Path.start(model.start(*range(n_sentences)), range(n_sentences))
    return beam_search(
        constrained(model, constraints), state, max_lens=[MAX_LEN] * n_sentences, **LIMITS, beam=beam, nbest=1
    )


def repeats(ids: tuple[int, ...], n: int) -> bool:
    runs = [ids[i : i + n] for i in range(len(ids) - n + 1)]
    return len(set(runs)) < len(runs)


def best(model: PrefixModel, sentence: int, prefix: tuple[int, ...], n: int) -> float:
    """The score of the best sequence that begins so and repeats no run of n tokens."""
    words = [i for i in range(N_IDS) if i != EOS]
    scores = []
    for length in range(MAX_LEN + 1):
        for ids in itertools.product(words, repeat=length):
            if ids[: len(prefix)] == prefix and not (n and repeats(ids, n)):
                scores.append(sum(model.forced(sentence, ids)) / length_penalty(length + 1, 0.6))
    return max(scores)


@given(st.integers(0, 10_000), st.integers(0, 3), st.booleans())
def test_a_wide_beam_finds_the_best_of_what_is_left(seed: int, n: int, has_prefixes: bool) -> None:
    model = PrefixModel(seed, N_IDS, eos_bias=-1.0)
    prefixes = [(2,), (), (3, 2)] if has_prefixes else None
    wide = N_IDS**MAX_LEN  # then beam search is exhaustive
    for sentence, (found,) in enumerate(search(model, Constraints(prefixes=prefixes, no_repeat_ngram=n), 3, wide)):
        prefix = () if prefixes is None else prefixes[sentence]
        assert found.ids[: len(prefix)] == prefix
        assert not (n and repeats(found.ids, n))
        assert found.token_log_probs == pytest.approx(model.forced(sentence, found.ids))
        assert found.score == pytest.approx(best(model, sentence, prefix, n))


def test_greedy_search_and_sampling_obey_too() -> None:
    model = PrefixModel(3, 6, eos_bias=-3.0, scale=3.0)
    constraints = Constraints(prefixes=[(2, 3), (4,)], no_repeat_ngram=2)
    step = constrained(model, constraints)

    def start() -> Path:
        return Path.start(model.start(0, 1), range(2))

    found = greedy_search(step, start(), max_lens=[8, 8], **LIMITS)
    found += [
        one
        for sentence in sample_search(step, start(), max_lens=[8, 8], **LIMITS, indices=[0, 1], n_samples=5)
        for one in sentence
    ]
    for number, one in enumerate(found):
        prefix = [(2, 3), (4,)][number if number < 2 else (number - 2) // 5]
        assert one.ids[: len(prefix)] == prefix
        assert not repeats(one.ids, 2)
    free = greedy_search(model, model.start(0, 1), max_lens=[8, 8], **LIMITS)
    assert any(repeats(one.ids, 2) for one in free), "or nothing was forbidden"


def test_a_prefix_may_repeat_itself() -> None:
    model = PrefixModel(5, 5)
    (found,) = search(model, Constraints(prefixes=[(2, 2, 2)], no_repeat_ngram=1), 1, 3)[0]
    assert found.ids[:3] == (2, 2, 2)
    assert 2 not in found.ids[3:]


def test_limits_leave_room_for_the_prefix() -> None:
    constraints = Constraints(prefixes=[(2,) * 9, ()])
    assert constraints.limits([3, 3], 2) == [9, 5]
    assert Constraints().limits([3, 4], 2) == [5, 6]
    assert constraints.of([1]).prefixes == [()]
    assert not Constraints()
    assert constraints
    with pytest.raises(ConfigError, match="no_repeat_ngram=-1"):
        Constraints(no_repeat_ngram=-1)


def test_rows_keep_their_own_history() -> None:
    """Beams are taken apart and put together: each row must go on with what it wrote itself."""
    path = Path.start(PrefixModel(1, 5).start(0, 1), range(2))
    step = constrained(PrefixModel(1, 5), Constraints(no_repeat_ngram=1))
    _, path = step(torch.tensor([BOS, BOS]), path)
    log_probs, path = step(torch.tensor([2, 3]), path)
    assert log_probs[0, 2] == log_probs[1, 3] == -torch.inf
    log_probs, _ = step(torch.tensor([4, 4, 2]), path.select(torch.tensor([1, 0, 1])))
    forbidden = [set(row.isneginf().nonzero()[:, 0].tolist()) for row in log_probs]
    assert forbidden == [{3, 4}, {2, 4}, {3, 2}]
