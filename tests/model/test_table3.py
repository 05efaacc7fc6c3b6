"""Numbers of parameters against the paper's table 3.

No one vocabulary reproduces the whole printed column: solved for the vocabulary, the base rows ask for about 41 000
and the big one for about 36 000, while section 5.1 says about 37 000. At 37 000 every printed total is met within
7 %, and the differences between rows, in which the vocabulary cancels, within the rounding of the printed millions.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

BASE_MILLIONS = 65

# Row, what it changes in the base model, the parameters it prints in millions.
PRINTED: list[tuple[str, dict[str, Any], int]] = [
    ("base", {}, BASE_MILLIONS),
    ("B d_k=16", {"d_k": 16}, 58),
    ("B d_k=32", {"d_k": 32}, 60),
    ("C N=2", {"n_encoder_layers": 2, "n_decoder_layers": 2}, 36),
    ("C N=4", {"n_encoder_layers": 4, "n_decoder_layers": 4}, 50),
    ("C N=8", {"n_encoder_layers": 8, "n_decoder_layers": 8}, 80),
    ("C d_model=256", {"d_model": 256, "d_k": 32, "d_v": 32}, 28),
    ("C d_model=1024", {"d_model": 1024, "d_k": 128, "d_v": 128}, 168),
    ("C d_ff=1024", {"d_ff": 1024}, 53),
    ("C d_ff=4096", {"d_ff": 4096}, 90),
    ("big", {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3}, 213),
]

# Rows that print no count, because it is the base model's.
SAME_AS_BASE: list[tuple[str, dict[str, Any]]] = [
    ("A h=1", {"n_heads": 1, "d_k": 512, "d_v": 512}),
    ("A h=4", {"n_heads": 4, "d_k": 128, "d_v": 128}),
    ("A h=16", {"n_heads": 16, "d_k": 32, "d_v": 32}),
    ("A h=32", {"n_heads": 32, "d_k": 16, "d_v": 16}),
    ("D dropout 0.0", {"dropout": 0.0}),
    ("D dropout 0.2", {"dropout": 0.2}),
]


def n_parameters(**changes: Any) -> int:
    with torch.device("meta"):  # shapes without memory
        model = Transformer(ModelConfig.base(vocab_size=37_000, **changes))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("row", "changes", "millions"), PRINTED, ids=[row for row, _, _ in PRINTED])
def test_printed_counts(row: str, changes: dict[str, Any], millions: int) -> None:
    assert n_parameters(**changes) / 1e6 == pytest.approx(millions, rel=0.07)


@pytest.mark.parametrize(
    ("row", "changes", "millions"),
    [row for row in PRINTED[1:] if "d_model" not in row[1]],
    ids=[row for row, changes, _ in PRINTED[1:] if "d_model" not in changes],
)
def test_differences_from_base(row: str, changes: dict[str, Any], millions: int) -> None:
    difference = (n_parameters(**changes) - n_parameters()) / 1e6
    assert difference == pytest.approx(millions - BASE_MILLIONS, abs=0.6)  # two numbers rounded to a million


@pytest.mark.parametrize(("row", "changes"), SAME_AS_BASE, ids=[row for row, _ in SAME_AS_BASE])
def test_rows_without_a_count_have_the_base_models(row: str, changes: dict[str, Any]) -> None:
    assert n_parameters(**changes) == n_parameters()


def test_learned_positions_add_a_table_on_each_side() -> None:
    """Row E prints no count either; its tables are small change."""
    assert n_parameters(positions="learned") - n_parameters() == 2 * 1024 * 512


def test_base_and_big_by_hand() -> None:
    """The sums written out: attention without biases, feed-forward with, two vectors per norm, one embedding."""

    def by_hand(d: int, f: int) -> int:
        attention, feed_forward, norm = 4 * d * d, 2 * d * f + f + d, 2 * d
        encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
        return 6 * (encoder + decoder) + 37_000 * d

    assert n_parameters() == by_hand(512, 2048) == 63_045_632
    assert n_parameters(**PRINTED[-1][1]) == by_hand(1024, 4096) == 214_171_648
