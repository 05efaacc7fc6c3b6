"""What is said of a model's weights without torch is what torch's model has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.checkpoint.shapes import check_shapes, weight_shapes
from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "activation": "swiglu"},
        {"positions": "learned", "tie_embeddings": False, "max_len_tokens": 17},
        {"attention_bias": True, "d_k": 6, "d_v": 10, "n_encoder_layers": 3, "n_decoder_layers": 1},
    ],
)
def test_the_names_and_shapes_of_the_state_dict(changes: dict[str, Any]) -> None:
    settings = {"vocab_size": 30, "d_model": 16, "d_ff": 24, "n_heads": 2, "n_encoder_layers": 2, "n_decoder_layers": 2}
    config = ModelConfig(**(settings | changes))
    assert weight_shapes(config) == {name: tuple(v.shape) for name, v in Transformer(config).state_dict().items()}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"a": [2]}, "lacks the weight b"),
        ({"a": [2], "b": [3], "c": [1]}, "has the weight c, which the model has not"),
        ({"a": [2], "b": [4]}, r"has b of shape \[4\], not \[3\]"),
    ],
)
def test_other_weights_are_refused(found: dict[str, list[int]], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        check_shapes(Path("weights"), found, {"a": [2], "b": [3]})
    check_shapes(Path("weights"), {"a": [2], "b": [3]}, {"a": (2,), "b": (3,)})
