"""The settings of training, section `[train]`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from dragoman.errors import ConfigError

Schedule = Literal["paper", "linear"]
Precision = Literal["float32", "bfloat16"]
OptimizerName = Literal["adam", "muon"]
Beginning = Literal["random", "text"]
PAPER_STEPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How long and how to train. Defaults are the paper's (sections 5.2 to 5.4, base model)."""

    steps: int | None = None  # updates; 100 000 as in the paper unless epochs or a budget are given
    epochs: int | None = None  # passes over the text, instead of steps
    budget_s: float | None = None  # seconds for everything; settings not given are then chosen, the steps among them
    pace: list[list[float]] | None = None  # how a run under a budget went: (step, share of the way) where it changed
    label_smoothing: float = 0.1  # eps_ls: share of the label spread over the vocabulary
    r_drop: float = 0.0  # how much predictions after different dropout should agree; each sentence is then read twice
    both_ways: float = 0.0  # share of the way, from its start, in which every other batch is read from target to source
    optimizer: OptimizerName = "adam"  # "muon" learns more from each update of some thousand tokens, and costs more
    schedule: Schedule = "paper"  # "linear" falls to zero at the last step instead of by the inverse square root
    lr: float | None = None  # the peak, reached after the warm-up; the paper's is (d_model * warmup_steps)^-0.5
    warmup_steps: int = 4000  # updates until the peak of the learning rate
    weight_decay: float = 0.0  # share of the layers' matrices, times the rate, that every update takes away
    accumulate: int = 1  # batches per update
    precision: Precision = "float32"  # of matrix products; "bfloat16" keeps weights, sums and norms in float32
    compile: bool = False  # by torch.compile, on a GPU; takes about a minute first, and a budget tries whether it pays
    clip_norm: float | None = None  # largest norm of the gradient; the paper does not clip
    log_every: int = 50  # updates between two lines of metrics.jsonl
    valid_every: int = 1000  # updates between two validations
    valid_sentences: int | None = None  # validate on this many, evenly spaced, instead of all
    save_every: int = 1000  # updates between two checkpoints
    keep: int = 5  # checkpoints kept, besides the best
    average: int = 5  # checkpoints averaged at the end (section 6.1: 5 for base, 20 for big)
    tune_search: bool = False  # choose search.length_penalty at the end, by BLEU on the validation text
    patience: int | None = None  # validations without improvement after which training stops
    init: str | None = None  # a trained model to start from; its shape and vocabulary are kept
    embeddings: Beginning = "random"  # to begin with; "text" puts subwords that occur in the same pairs close together
    seed: int = 1  # the same seed gives the same run
    device: str = "auto"  # auto, cpu or cuda
    threads: int | None = None  # PyTorch's choice unless given

    def __post_init__(self) -> None:
        for name, choices in (
            ("optimizer", OptimizerName), ("schedule", Schedule), ("precision", Precision), ("embeddings", Beginning),
        ):  # fmt: skip
            value = getattr(self, name)
            if value not in get_args(choices):
                raise ConfigError(
                    f'train.{name}="{value}" is not a choice',
                    hint=f"use one of {', '.join(get_args(choices))}",
                )
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("train.steps and train.epochs are both given", hint="give one of them")
        for name in (
            "steps", "epochs", "warmup_steps", "accumulate", "log_every", "valid_every", "save_every",
            "keep", "average", "patience", "threads", "valid_sentences",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"train.{name}={value} is below 1", hint="give a whole number above 0")
        for name in ("lr", "clip_norm", "budget_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(
                    f"train.{name}={value} is not a number above 0", hint=f"leave train.{name} out, or raise it"
                )
        if self.pace is not None:
            _check_pace(self.pace, self.steps)
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                f"train.label_smoothing={self.label_smoothing} is not between 0 and 1", hint="the paper uses 0.1"
            )
        if not 0 <= self.r_drop < math.inf:
            raise ConfigError(
                f"train.r_drop={self.r_drop} is not a number from 0 up", hint="3 to 5 suit a small text; 0 is without"
            )
        if not 0 <= self.weight_decay < math.inf:
            raise ConfigError(
                f"train.weight_decay={self.weight_decay} is not a number from 0 up",
                hint="0.3 suits a small text and Muon; 0 is without",
            )
        if not 0 <= self.both_ways <= 1:
            raise ConfigError(
                f"train.both_ways={self.both_ways} is not between 0 and 1", hint="0.33 suits a small text; 0 is without"
            )
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"train.seed={self.seed} is not a seed", hint="give a whole number from 0 up")
        if self.average > self.keep:
            raise ConfigError(
                f"train.average={self.average} asks for more checkpoints than train.keep={self.keep} leaves",
                hint=f"set train.keep={self.average}",
            )


def _check_pace(pace: list[list[float]], steps: int | None) -> None:
    """Both columns must rise, the first to the step after the last, the second to 1."""
    is_table = all(isinstance(point, list) and len(point) == 2 for point in pace)
    if not is_table or len(pace) < 2 or steps is None or pace[-1] != [steps + 1, 1]:
        raise ConfigError(
            "train.pace is not a list of [step, share] pairs that ends with [train.steps + 1, 1]", hint="leave it out"
        )
    for (step, share), (next_step, next_share) in pairwise(pace):
        if not (step < next_step and 0 <= share <= next_share):
            raise ConfigError(f"train.pace does not rise from [{step}, {share}] on", hint="leave train.pace out")
