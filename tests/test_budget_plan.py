"""The plan: what it chooses, from the speed of a machine that is made up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dragoman.batches.sampler import epoch_batches
from dragoman.batches.store import EncodedPairs, write_store
from dragoman.budget import SHAPES, choose_training, choose_vocabulary
from dragoman.config import Config, make_config
from dragoman.errors import TrainingError
from dragoman.session import _brevity

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> EncodedPairs:
    """400 pairs of 10 tokens on each side."""
    ids = [*range(5, 14), 3]
    return write_store(tmp_path_factory.mktemp("plan") / "encoded", [(ids, ids)] * 400, 4000)


def plan(pairs: EncodedPairs, left_s: float, speed: float = 1e9, **given: object) -> tuple[Config, dict[str, str]]:
    """The plan on a machine that trains `speed` / weights target tokens a second."""

    def probe(config: Config) -> float:
        return speed / (config.model.d_model**2 * config.model.n_decoder_layers)

    config = make_config(
        {"model": {"vocab_size": 4000}}, *({n.split(".")[0]: {n.split(".")[1]: v}} for n, v in given.items())
    )
    config, choices = choose_training(config, set(given), pairs, device=CPU, left_s=left_s, n_valid=2000, probe=probe)
    return config, {choice.setting: choice.reason for choice in choices}


def test_more_time_buys_a_larger_shape_and_more_dropout(pairs: EncodedPairs) -> None:
    many = EncodedPairs(pairs._ids, np.tile(pairs._index, 2500))  # ten million target tokens
    plans = [plan(many, left_s)[0] for left_s in (0.5, 1_000, 10_000, 100_000, 10_000_000)]
    widths = [config.model.d_model for config in plans]
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (SHAPES[0][0], SHAPES[-1][0])
    dropouts = [config.model.dropout for config in plans]
    assert dropouts == sorted(dropouts)
    assert (dropouts[0], dropouts[-1]) == (0.0, 0.3)
    rates = [config.train.lr for config in plans]
    assert rates == sorted(rates, reverse=True), "a wider model wants a lower rate"


def test_a_small_text_gets_the_smallest_shape_however_long_it_trains(pairs: EncodedPairs) -> None:
    config, reasons = plan(pairs, 1_000_000)
    assert config.model.d_model == SHAPES[0][0]
    assert "for this text" in reasons["model.d_model"]


def test_the_steps_fill_the_time(pairs: EncodedPairs) -> None:
    """Tokens a second, times the seconds that are not spared, over the target tokens of an update."""
    config, _ = plan(pairs, 500)
    n_tokens = 1e9 / (config.model.d_model**2 * config.model.n_decoder_layers) * 500 * 0.96
    n_batches = len(list(epoch_batches(pairs, config.batches, seed=1, epoch=0)))
    assert config.train.steps == pytest.approx(n_tokens / (4000 / n_batches), abs=1)


def test_a_text_that_would_be_seen_very_often_is_read_twice_each_time(pairs: EncodedPairs) -> None:
    """R-Drop, from 45 passes on: 13,000 tokens a second, 4000 target tokens, and 0.96 of the time."""
    found = [plan(pairs, seconds)[0].train.r_drop for seconds in (10, 14.3, 14.5, 500)]
    assert found == [0.0, 0.0, 3.0, 3.0]
    for seconds, dropped in ((79.5, (0.2, 0.0)), (80.5, (0.3, 0.1))):  # 250 passes are a reason to drop more
        config, _ = plan(pairs, seconds)
        assert (config.train.r_drop, config.model.dropout, config.tokens.dropout) == (3.0, *dropped)
    assert plan(pairs, 500, **{"train.r_drop": 0.0})[0].train.r_drop == 0.0


def test_a_text_that_is_seen_often_is_read_both_ways_at_first(pairs: EncodedPairs) -> None:
    """From 15 passes on; but not by a model that is trained already, nor by one that learns from a teacher."""
    assert [plan(pairs, seconds)[0].train.both_ways for seconds in (4.7, 4.9, 500)] == [0.0, 0.33, 0.33]
    for given in ({"train.both_ways": 0.0}, {"train.init": "model"}, {"text.teachers": ["model"], "text.src": "text"}):
        assert plan(pairs, 500, **given)[0].train.both_ways == 0.0


def test_the_more_often_a_text_is_seen_the_more_is_dropped(pairs: EncodedPairs) -> None:
    """None below 3 passes, 0.2 from 25 on: 13,000 tokens a second, 4000 target tokens, and 0.96 of the time."""
    found = [plan(pairs, seconds)[0].model.dropout for seconds in (0.9, 1.0, 7.9, 8.1)]
    assert found == [0.0, 0.1, 0.1, 0.2]


def test_weights_decay_that_mean_nothing(pairs: EncodedPairs) -> None:
    """Those that Muon moves, at every length of training; but not those of a model that is trained already."""
    assert [plan(pairs, seconds)[0].train.weight_decay for seconds in (1, 500)] == [0.3, 0.3]
    for given in ({"train.init": "model"}, {"train.optimizer": "adam"}, {"train.weight_decay": 0.0}):
        assert plan(pairs, 500, **given)[0].train.weight_decay == 0.0


def test_what_was_given_stays(pairs: EncodedPairs) -> None:
    given = {"model.d_model": 64, "model.dropout": 0.25, "train.lr": 0.01, "batches.tokens": 1000, "train.average": 2}
    config, reasons = plan(pairs, 500, **given)
    assert config.model.d_model == 64
    assert (config.model.dropout, config.train.lr, config.batches.tokens, config.train.average) == (0.25, 0.01, 1000, 2)
    assert not reasons.keys() & given.keys()


def test_every_choice_has_a_reason(pairs: EncodedPairs) -> None:
    _, reasons = plan(pairs, 500)
    assert all(reasons.values())


def test_validation_is_a_sample_of_about_5000_tokens_and_less_where_time_is_short(pairs: EncodedPairs) -> None:
    """Of 10 tokens a sentence."""
    sizes = [plan(pairs, seconds)[0].train.valid_sentences for seconds in (500, 150, 30)]
    assert sizes == [500, 250, 150]


def test_a_model_that_does_not_stop_makes_validation_look_dearer_than_it_will_be() -> None:
    assert _brevity(["aaaa", "aaaa"], ["b", "b"]) == 0.25
    assert _brevity(["a"], ["bbb"]) == 1.0
    assert _brevity([""], ["b"]) == 1.0


def test_a_larger_text_gets_a_larger_vocabulary() -> None:
    sizes = [choose_vocabulary(Config(), (), n_chars)[0].tokens.vocab_size for n_chars in (10**6, 10**9)]
    assert sizes == [4000, 8000]
    assert choose_vocabulary(Config(), {"tokens.vocab_size"}, 10**9)[0].tokens.vocab_size == Config().tokens.vocab_size


def test_bfloat16_is_tried_only_where_the_processor_has_it(
    pairs: EncodedPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def probe(config: Config) -> float:
        tried.append(config.train.precision)
        return 3000.0 if config.train.precision == "bfloat16" else 1000.0

    found = {}
    for is_there in (True, False):
        tried.clear()
        monkeypatch.setattr("dragoman.budget.has_bfloat16", lambda is_there=is_there: is_there)
        config = make_config({"model": {"vocab_size": 4000}})
        config, choices = choose_training(config, set(), pairs, device=CPU, left_s=100, n_valid=2000, probe=probe)
        found[config.train.precision] = next(one.reason for one in choices if one.setting == "train.precision")
        assert ("bfloat16" in tried) == is_there
    assert "3.00 times as fast" in found["bfloat16"]
    assert "no products of bfloat16" in found["float32"]


@pytest.mark.parametrize(
    ("compiled", "left_s", "is_chosen"), [(1.5, 1200, True), (1.05, 1200, False), (1.5, 1199, None)]
)
def test_a_gpu_compiles_where_that_was_measured_to_pay(
    pairs: EncodedPairs, compiled: float, left_s: float, is_chosen: bool | None
) -> None:
    """Where there is time to earn back what compiling takes; the steps then count on the speed that it gives."""

    def probe(config: Config) -> float:
        return 1000.0 * (compiled if config.train.compile else 1.0)

    def plan_on(device: str) -> tuple[Config, dict[str, object]]:
        config, choices = choose_training(
            make_config({"model": {"vocab_size": 4000}}), set(), pairs,
            device=torch.device(device), left_s=left_s, n_valid=2000, probe=probe,
        )  # fmt: skip
        return config, {choice.setting: choice.value for choice in choices}

    config, choices = plan_on("cuda")
    assert choices.get("train.compile") is is_chosen
    assert config.train.compile is bool(is_chosen)
    n_tokens = 1000 * (compiled if is_chosen else 1.0) * left_s * 0.96
    n_batches = len(list(epoch_batches(pairs, config.batches, seed=1, epoch=0)))
    assert config.train.steps == pytest.approx(n_tokens / (4000 / n_batches), abs=1)
    assert "train.compile" not in plan_on("cpu")[1]


def test_a_gpu_without_a_compiler_trains_as_it_is(pairs: EncodedPairs) -> None:
    def probe(config: Config) -> float:
        if config.train.compile:
            raise TrainingError("torch.compile has failed: no compiler", hint="")
        return 1000.0

    config, choices = choose_training(
        make_config({"model": {"vocab_size": 4000}}), set(), pairs,
        device=torch.device("cuda"), left_s=3600, n_valid=2000, probe=probe,
    )  # fmt: skip
    assert not config.train.compile
    reasons = {choice.setting: choice.reason for choice in choices}
    assert reasons["train.compile"] == "torch.compile has failed: no compiler"
