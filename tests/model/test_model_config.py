"""The model's settings: what is refused, and what the refusal says."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.model.config import ModelConfig


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"norm": "mid"}, 'model.norm="mid" is not a choice', "use one of post, pre"),
        ({"positions": "rope"}, 'model.positions="rope" is not a choice', "sinusoidal, learned, none"),
        ({"activation": "tanh"}, 'model.activation="tanh" is not a choice', "relu, gelu, swiglu"),
        *(
            ({name: value}, f"model.{name}={value} is below 1", "above 0")
            for name in (
                "vocab_size", "d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers", "max_len_tokens"
            )
            for value in (0, -3)
        ),
        *(
            ({"dropout": value}, f"model.dropout={value} is not a probability below 1", "0.1")
            for value in (-0.1, 1.0, 2.0, float("nan"))
        ),
        ({"pad_id": -1}, "model.pad_id=-1 is outside the vocabulary of 37000", "0"),
        ({"pad_id": 37_000}, "model.pad_id=37000 is outside the vocabulary", "0"),
        (
            {"d_model": 100, "n_heads": 8},
            "model.d_model=100 does not split over n_heads=8",
            "use d_model=96 or d_model=104, or set d_k and d_v",
        ),
        ({"d_model": 100, "d_k": 12}, "model.d_model=100 does not split over n_heads=8", "d_v"),
        ({"d_model": 4, "n_heads": 8}, "model.d_model=4 does not split over n_heads=8", "use d_model=8"),
        ({"d_k": 0}, "the key_width of an attention head is 0", "raise d_k"),
        ({"d_v": -2}, "the value_width of an attention head is -2", "d_v"),
    ],
)  # fmt: skip
def test_refusals(changes: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**changes)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def test_head_widths_are_resolved() -> None:
    assert (ModelConfig().key_width, ModelConfig().value_width) == (64, 64)
    config = ModelConfig(d_model=100, d_k=12, d_v=13)
    assert (config.key_width, config.value_width) == (12, 13)
    assert (ModelConfig(d_k=16).key_width, ModelConfig(d_k=16).value_width) == (16, 64)


def test_defaults_are_the_papers_base_model() -> None:
    assert ModelConfig() == ModelConfig.base()
    config = ModelConfig()
    assert (config.attention_bias, config.attention_scale, config.vocab_size) == (False, True, 37_000)


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ModelConfig().d_model = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        ModelConfig(512)  # type: ignore[misc]
