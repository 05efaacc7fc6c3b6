"""Paired bootstrap: sacreBLEU's resamples, looked at two-sided, with an interval of the difference."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from dragoman.errors import ConfigError, DataError
from dragoman.score.metrics import score
from dragoman.score.significance import _resampled_scores, _statistics, paired_bootstrap

WORDS = ["the", "a", "man", "woman", "dog", "rides", "sees", "red", "small", "house", "in", "under", "today"]
N_SAMPLES = 200


def spoiled(lines, share, seed):
    """The lines with this share of their words replaced."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture(scope="module")
def references():
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) for _ in range(61)]


@pytest.fixture(scope="module")
def ours(references):
    return spoiled(references, 0.3, seed=1)


@pytest.fixture(scope="module")
def theirs(references):
    return spoiled(references, 0.36, seed=2)


def test_full_sample_scores_are_the_corpus_scores(ours, theirs, references):
    found = paired_bootstrap(ours, theirs, references, n_samples=N_SAMPLES)
    ours_alone, theirs_alone = score(ours, references), score(theirs, references)
    for metric in ("bleu", "chrf", "ter"):
        difference = getattr(found, metric)
        assert difference.ours == pytest.approx(getattr(ours_alone, metric).score, abs=1e-9)
        assert difference.theirs == pytest.approx(getattr(theirs_alone, metric).score, abs=1e-9)
        assert difference.difference == difference.ours - difference.theirs
        assert difference.low <= difference.high
        plain = getattr(ours_alone, metric).signature.removeprefix("nrefs:1|")
        assert difference.signature == f"nrefs:1|bs:{N_SAMPLES}|seed:12345|{plain}"
    assert found.sentences == len(references)


@pytest.mark.parametrize(("metric", "name"), [(BLEU(), "BLEU"), (CHRF(), "chrF2"), (TER(), "TER")])
def test_resamples_give_sacrebleus_p_value_by_its_definition(metric, name, ours, theirs, references, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    test = PairedTest(
        [("theirs", theirs), ("ours", ours)], {name: metric}, [references], test_type="bs", n_samples=N_SAMPLES
    )
    signatures, results = test()
    expected = results[name][1].p_value

    samples = _resampled_scores(
        metric,
        _statistics(metric, ours, references),
        _statistics(metric, theirs, references),
        n_samples=N_SAMPLES,
        seed=12345,
    )
    assert samples[0].mean() == pytest.approx(results[name][1].mean, abs=1e-4)
    absolute = np.abs(samples[0] - samples[1])
    found = getattr(paired_bootstrap(ours, theirs, references, n_samples=N_SAMPLES), name.lower().rstrip("2"))
    n_more = (absolute - absolute.mean() > abs(found.difference)).sum()
    assert (n_more + 1) / (N_SAMPLES + 1) == expected
    assert found.signature == str(signatures[name])
    # Theirs looks at one side only.
    assert expected <= found.p_value


def test_the_same_seed_gives_the_same_answer_and_another_one_a_different(ours, theirs, references):
    how = {"n_samples": 50}
    first = paired_bootstrap(ours, theirs, references, seed=1, **how)
    assert first == paired_bootstrap(ours, theirs, references, seed=1, **how)
    assert first.bleu.low != paired_bootstrap(ours, theirs, references, seed=2, **how).bleu.low


def test_swapping_the_outputs_changes_only_the_sign(ours, theirs, references):
    one = paired_bootstrap(ours, theirs, references, n_samples=50).chrf
    other = paired_bootstrap(theirs, ours, references, n_samples=50).chrf
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.p_value == other.p_value


def test_equal_outputs_do_not_differ(ours, references):
    found = paired_bootstrap(ours, ours, references, n_samples=50)
    for difference in (found.bleu, found.chrf, found.ter):
        assert (difference.difference, difference.low, difference.high, difference.p_value) == (0, 0, 0, 1)


def test_a_clear_difference_is_found_and_a_chance_one_is_not(references):
    good, bad = spoiled(references, 0.1, seed=3), spoiled(references, 0.7, seed=4)
    clear = paired_bootstrap(good, bad, references, n_samples=N_SAMPLES)
    assert clear.bleu.p_value == clear.chrf.p_value == clear.ter.p_value == 1 / (N_SAMPLES + 1)
    assert clear.bleu.low > 0
    assert clear.ter.high < 0
    by_chance = paired_bootstrap(good, spoiled(references, 0.1, seed=5), references, n_samples=N_SAMPLES)
    assert by_chance.bleu.p_value > 0.05
    assert by_chance.bleu.low < 0 < by_chance.bleu.high


def test_p_values_under_the_null_are_about_uniform():
    """Two equally good systems: p falls below 0.25 about as often as it should."""
    rng = random.Random(9)
    n_below = 0
    for trial in range(40):
        lines = [" ".join(rng.choices(WORDS, k=6)) for _ in range(30)]
        one, other = spoiled(lines, 0.3, seed=trial + 1000), spoiled(lines, 0.3, seed=trial + 2000)
        n_below += paired_bootstrap(one, other, lines, n_samples=40).chrf.p_value < 0.25
    assert 3 <= n_below <= 20  # 10 expected, 2.7 standard deviation


def test_json_has_every_number(ours, theirs, references):
    printed = json.loads(json.dumps(paired_bootstrap(ours, theirs, references, n_samples=10).to_dict()))
    assert list(printed) == ["bleu", "chrf", "ter", "sentences"]
    assert list(printed["ter"]) == ["ours", "theirs", "difference", "low", "high", "p_value", "signature"]


def test_bad_input_is_refused(ours, references):
    with pytest.raises(DataError, match="60 hypotheses but 61 references"):
        paired_bootstrap(ours, ours[1:], references)
    with pytest.raises(DataError, match="nothing to score"):
        paired_bootstrap([], [], [])
    with pytest.raises(ConfigError, match="n_samples=0"):
        paired_bootstrap(ours, ours, references, n_samples=0)
    with pytest.raises(ConfigError, match="seed=-1"):
        paired_bootstrap(ours, ours, references, seed=-1)
