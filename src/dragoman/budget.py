"""What a time budget buys: settings that suit the text, the machine and the time, each with its reason.

The rules were found by experiment (docs/notes/0005-budget.md). They fill in only what was not given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from dragoman.batches.batch import make_batch
from dragoman.batches.sampler import BatchesConfig, epoch_batches
from dragoman.batches.store import EncodedPairs
from dragoman.config import Config, Settings
from dragoman.engines.processor import has_bfloat16
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.tokens.subwords import BOS_ID, PAD_ID
from dragoman.train.config import TrainConfig
from dragoman.train.loop import updates
from dragoman.train.optim import make_optimizer

# From the smallest to the largest: d_model, d_ff, heads, layers on each side.
SHAPES = ((160, 480, 4, 3), (224, 672, 4, 3), (320, 1280, 8, 4), (512, 2048, 8, 6))
_TOKENS_PER_WEIGHT = 1.5  # a larger shape pays once training shows it this many target tokens for each weight
_WEIGHTS_PER_TOKEN = 6  # a larger shape has more weights for each target token of the text than it can learn well
_SEVERAL_PASSES = 15  # over the text: from here on it pays to read it both ways at first
_OFTEN = 25  # passes over the text from which on more has to be dropped
_MANY_PASSES = 45  # over the text: from here on R-Drop makes more of half as many
_VERY_MANY_PASSES = 250  # with R-Drop: from here on still more has to be dropped; at 100 that learned too slowly
_MANY_CHARS = 25_000_000  # of both sides together: beyond, 8000 subwords; below, 4000
_SHORT_S = 120  # a budget below this has smaller updates, to have more of them
_PROBE_S = 0.5  # how long each shape is tried on this machine
_COMPILED_S = 1200  # a budget below this does not earn back the minute that torch.compile takes on a GPU
_WARM_UPDATES = 4  # of compiled layers, which may be compiled once more for a batch that is otherwise
_MOST_WORKERS = 8  # more would have too little to do each
_PARALLEL = 0.9  # how much of a further core arrives
_VALID_TOKENS = 5000  # translated at each look at the validation text, in a budget of at least _LONG_S
_FEWEST_VALID_TOKENS = 1500
_LONG_S = 300
_SPARED = 0.04  # share of the budget for validation, saving, scoring and the card, as a first guess


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting that the plan chose, and why."""

    setting: str
    value: Any
    reason: str


def choose_vocabulary(config: Config, given: Collection[str], n_chars: int) -> tuple[Config, list[Choice]]:
    """The config with a vocabulary for a text of this size."""
    size = 8000 if n_chars > _MANY_CHARS else 4000
    reason = f"{n_chars / 1e6:.0f} million characters; fewer subwords learn faster, more make shorter sentences"
    return _chosen(config, given, [Choice("tokens.vocab_size", size, reason)])


def choose_training(
    config: Config,
    given: Collection[str],
    pairs: EncodedPairs,
    *,
    device: torch.device,
    left_s: float,
    n_valid: int,
    probe: Callable[[Config], float] | None = None,
) -> tuple[Config, list[Choice]]:
    """The config with model, batches, optimizer and length for what is left of the time; measures the machine.

    `probe` tells how many target tokens one process trains on in a second with a config.
    """
    probe = cache(probe or (lambda config: tokens_per_s(config, pairs, device)))  # a shape is tried but once
    n_workers = 1 if device.type == "cuda" else min(torch.get_num_threads(), _MOST_WORKERS)
    n_tgt = int(pairs.tgt_lens.sum(dtype="int64"))
    train_s = left_s * (1 - _SPARED)
    config, choices = _chosen(config, given, list(_batch_choices(n_workers, device, left_s)))
    n_workers = min(n_workers, config.train.accumulate)
    speed_up = 1 + (n_workers - 1) * _PARALLEL

    if "train.precision" not in given:
        smallest, _ = _chosen(config, given, _shape_choices(*SHAPES[0]))
        is_in_question = device.type != "cpu" or has_bfloat16()
        config, chosen = _chosen(config, given, [_choose_precision(smallest, probe if is_in_question else None)])
        choices += chosen
    shape = _choose_shape(config, given, n_tgt, lambda trial: probe(trial) * speed_up * train_s)
    config, chosen = _chosen(config, given, shape)
    choices += chosen
    config, chosen = _chosen(config, given, _choose_r_drop(probe(config) * speed_up * train_s / n_tgt))
    choices += chosen
    if device.type == "cuda" and left_s >= _COMPILED_S and "train.compile" not in given:
        config, chosen = _chosen(config, given, [_choose_compile(config, probe)])
        choices += chosen
    n_tokens = probe(config) * speed_up * train_s
    epochs = n_tokens / n_tgt
    steps = max(1, round(n_tokens / (config.batches.tokens * config.train.accumulate * _fill(config, pairs))))
    n_valid_tokens = max(_FEWEST_VALID_TOKENS, int(_VALID_TOKENS * min(1.0, left_s / _LONG_S)))
    n_looked_at = min(n_valid, max(1, int(n_valid_tokens * len(pairs) / n_tgt)))
    config, chosen = _chosen(config, given, list(_pace_choices(config, epochs, steps, n_looked_at, n_valid_tokens)))
    choices += chosen
    if "search.length_penalty" not in given:
        reason = "the length penalty that suits the text is found out at the end"
        config, chosen = _chosen(config, given, [Choice("train.tune_search", True, reason)])
        choices += chosen
    return replace(config, train=replace(config.train, steps=steps)), choices


def tokens_per_s(config: Config, pairs: EncodedPairs, device: torch.device) -> float:
    """Target tokens per second of one process, measured on batches of the text."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // config.train.accumulate))
    model = Transformer(config.model).to(device)
    train = config.train
    settings = TrainConfig(
        optimizer=train.optimizer, accumulate=train.accumulate, precision=train.precision, seed=train.seed,
        r_drop=train.r_drop, compile=train.compile,
    )  # fmt: skip
    batches, optimizer = _some_batches(config.batches, pairs, train.seed), make_optimizer(model, settings)
    stream = updates(model, batches, optimizer, lambda step: 1e-4, settings, pad_id=config.model.pad_id)
    for _ in range(_WARM_UPDATES if train.compile else 1):  # the first is slow
        next(stream)
    n_tokens, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < _PROBE_S or n_tokens == 0:
        n_tokens += next(stream).n_tgt_tokens
    stream.close()
    torch.set_num_threads(before)
    return n_tokens / elapsed


def _some_batches(config: BatchesConfig, pairs: EncodedPairs, seed: int) -> Iterator[Any]:
    epoch = 0
    while True:
        for indices in epoch_batches(pairs, config, seed=seed, epoch=epoch):
            yield make_batch(pairs, indices, pad_id=PAD_ID, bos_id=BOS_ID)
        epoch += 1


def _batch_choices(n_workers: int, device: torch.device, left_s: float) -> Iterator[Choice]:
    shared = f"a batch for each of {n_workers} processes in every update" if n_workers > 1 else "one batch an update"
    yield Choice("train.accumulate", n_workers, shared)
    n_tokens, why = 4096, "fewer cost more, in the optimizer"
    if device.type == "cuda":
        n_tokens, why = 8192, "what keeps a GPU busy"
    elif left_s < _SHORT_S:
        n_tokens, why = 2048, "more would make too few updates in this time"
    yield Choice("batches.tokens", n_tokens // n_workers, f"{n_tokens} an update: {why}")
    yield Choice("train.optimizer", "muon", "learns most from an update of this size")
    yield Choice("train.embeddings", "text", "words that translate each other begin close together")
    yield Choice("model.norm", "pre", "trains safely after a short warm-up")


def _choose_precision(config: Config, probe: Callable[[Config], float] | None) -> Choice:
    if probe is None:  # a single update would take longer than all the rest of the plan
        return Choice("train.precision", "float32", "this processor has no products of bfloat16")
    plain, brief = (
        probe(replace(config, train=replace(config.train, precision=precision)))
        for precision in ("float32", "bfloat16")
    )
    reason = f"bfloat16 is {brief / plain:.2f} times as fast as float32 on this machine"
    return Choice("train.precision", "bfloat16" if brief > 1.05 * plain else "float32", reason)


def _shape_choices(d_model: int, d_ff: int, n_heads: int, n_layers: int, reason: str = "") -> list[Choice]:
    values = {
        "d_model": d_model, "d_ff": d_ff, "n_heads": n_heads,
        "n_encoder_layers": n_layers, "n_decoder_layers": n_layers,
    }  # fmt: skip
    return [Choice(f"model.{name}", value, reason) for name, value in values.items()]


def _choose_shape(
    config: Config, given: Collection[str], n_tgt: int, affordable: Callable[[Config], float]
) -> list[Choice]:
    """The largest shape that sees enough tokens in time, and for which the text is large enough."""
    best: list[Choice] = []
    before = None
    for shape in SHAPES:
        trial, _ = _chosen(config, given, _shape_choices(*shape))
        if trial == before:  # all of it was given
            break
        before = trial
        n_weights = sum(parameter.numel() for parameter in Transformer(trial.model).parameters())
        if best and n_weights > _WEIGHTS_PER_TOKEN * n_tgt:
            break
        n_tokens = affordable(trial)
        is_enough = n_tokens >= _TOKENS_PER_WEIGHT * n_weights
        if best and not is_enough:
            break
        rule = f"the largest shape for this text that sees {_TOKENS_PER_WEIGHT:g} target tokens for each weight in time"
        seen = f"{n_weights / 1e6:.1f} M weights, {n_tokens / 1e6:.1f} M tokens"
        best = _shape_choices(
            *shape, reason=f"{rule if is_enough else 'the smallest shape: there is time for no more'}: {seen}"
        )
    return best


def _choose_r_drop(epochs: float) -> list[Choice]:
    if epochs < _MANY_PASSES:
        return []
    return [Choice("train.r_drop", 3.0, f"half of {epochs:.0f} passes over the text, but every sentence twice in each")]


def _choose_compile(config: Config, probe: Callable[[Config], float]) -> Choice:
    plain = probe(config)
    try:
        compiled = probe(replace(config, train=replace(config.train, compile=True)))
    except TrainingError as error:  # for want of a compiler
        return Choice("train.compile", False, str(error))
    reason = f"compiled layers are {compiled / plain:.2f} times as fast on this machine"
    return Choice("train.compile", compiled > 1.1 * plain, reason)


def _pace_choices(config: Config, epochs: float, steps: int, n_valid: int, n_valid_tokens: int) -> Iterator[Choice]:
    dropout = 0.0 if epochs < 3 else 0.1 if epochs < _OFTEN else 0.2 if epochs < _VERY_MANY_PASSES else 0.3
    yield Choice("model.dropout", dropout, f"there is time for {epochs:.1f} passes over the text")
    is_new = config.train.init is None and not config.text.teachers
    if is_new and epochs >= _SEVERAL_PASSES:
        yield Choice("train.both_ways", 0.33, "a text seen so often gives more if read both ways at first")
    yield Choice("train.schedule", "linear", "lands at zero when the time is up")
    peak = 0.012 if config.train.optimizer == "muon" else 0.003
    rate = round(peak * math.sqrt(160 / config.model.d_model), 5)
    yield Choice("train.lr", rate, f"suits a width of {config.model.d_model}")
    warmup = max(1, min(800, steps // 20))
    yield Choice("train.warmup_steps", warmup, f"a twentieth of about {steps:,} updates")
    if config.train.optimizer == "muon" and config.train.init is None:
        yield Choice("train.weight_decay", 0.3, "forgets the weights that it began with, which mean nothing")
    yield Choice("train.clip_norm", 1.0, "bounds the damage of an odd batch")
    yield Choice("train.valid_every", max(1, steps // 10), "ten looks at the validation text")
    yield Choice(
        "train.valid_sentences", n_valid or None, f"about {n_valid_tokens:,} tokens: enough to see how it goes"
    )
    yield Choice("train.save_every", max(1, steps // 20), "a kill costs a twentieth of the time at most")
    yield Choice("train.keep", 2, "enough to go on from")
    yield Choice(
        "tokens.dropout",
        0.1 if epochs >= _VERY_MANY_PASSES else 0.0,
        f"there is time for {epochs:.1f} passes over the text",
    )
    yield Choice("train.average", 1, "the rate has fallen to zero: the last weights are an average already")
    yield Choice("train.log_every", max(1, steps // 100), "a hundred lines of metrics.jsonl")


def _fill(config: Config, pairs: EncodedPairs) -> float:
    """Target tokens of a batch that are not padding, as a share of `batches.tokens`."""
    batches = list(epoch_batches(pairs, config.batches, seed=config.train.seed, epoch=0))
    return int(pairs.tgt_lens.sum(dtype="int64")) / (len(batches) * config.batches.tokens)


def _chosen(config: Config, given: Collection[str], choices: list[Choice]) -> tuple[Config, list[Choice]]:
    """The config with the choices that were left open, and these."""
    made = [choice for choice in choices if choice.setting not in given]
    settings: Settings = {}
    for choice in made:
        section, key = choice.setting.split(".")
        settings.setdefault(section, {})[key] = choice.value
    changes = {section: replace(getattr(config, section), **values) for section, values in settings.items()}
    return replace(config, **changes), made
