"""The settings of training: the paper's, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.train.config import PAPER_STEPS, TrainConfig


def test_defaults_are_the_papers() -> None:
    config = TrainConfig()
    assert (config.warmup_steps, config.label_smoothing, config.average, config.schedule) == (4000, 0.1, 5, "paper")
    assert (config.lr, config.clip_norm, config.accumulate, config.patience) == (None, None, 1, None)
    assert PAPER_STEPS == 100_000


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"schedule": "cosine"}, 'train.schedule="cosine" is not a choice', "use one of paper, linear"),
        ({"steps": 5, "epochs": 2}, "train.steps and train.epochs are both given", "give one of them"),
        *(
            ({name: value}, f"train.{name}={value} is below 1", "above 0")
            for name in (
                "steps", "epochs", "warmup_steps", "accumulate", "log_every", "valid_every", "save_every", "keep",
                "average", "patience", "threads",
            )
            for value in (0, -1)
        ),
        *(
            ({name: value}, f"train.{name}={value} is not a number above 0", f"leave train.{name} out")
            for name in ("lr", "clip_norm")
            for value in (0.0, -1.0, float("nan"))
        ),
        *(
            ({"label_smoothing": value}, f"train.label_smoothing={value} is not between 0 and 1", "0.1")
            for value in (-0.1, 1.0, float("nan"))
        ),
        *(
            ({"r_drop": value}, f"train.r_drop={value} is not a number from 0 up", "3 to 5")
            for value in (-1.0, float("nan"))
        ),
        *(
            ({"weight_decay": value}, f"train.weight_decay={value} is not a number from 0 up", "0.3")
            for value in (-0.1, float("nan"))
        ),
        *(
            ({"both_ways": value}, f"train.both_ways={value} is not between 0 and 1", "0.33")
            for value in (-0.1, 1.1, float("nan"))
        ),
        ({"seed": -1}, "train.seed=-1 is not a seed", "from 0 up"),
        ({"seed": 2**63}, "is not a seed", "from 0 up"),
        (
            {"average": 6, "keep": 5},
            "train.average=6 asks for more checkpoints than train.keep=5 leaves",
            "set train.keep=6",
        ),
    ],
)  # fmt: skip
def test_refusals(changes: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainConfig(**changes)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_the_edges_that_are_allowed() -> None:
    TrainConfig(label_smoothing=0.0, seed=0, keep=5, average=5, steps=1, lr=1e-9)
    TrainConfig(epochs=1, seed=2**63 - 1, clip_norm=0.1, patience=1, threads=1)
