"""The model card: complete, valid Markdown whatever the names are, and a picture of the curve."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dragoman.checkpoint.card import Card, draw_curve, write_card

RECORDS = [
    {"step": 50, "loss": 5.0, "lr": 1e-4},
    {"step": 100, "loss": 4.0, "lr": 2e-4},
    {"step": 100, "valid_loss": 3.9, "valid_bleu": 2.0},
    {"step": 100, "final": "checkpoint of step 100"},
]


def make_card(**changes: object) -> Card:
    values: dict[str, object] = {
        "name": "de-en",
        "data": [("training text", "train.de → train.en")],
        "model": [("parameters", "1,234")],
        "training": [("seed", "1")],
        "scores": [("BLEU, validation", "12.34", "nrefs:1|case:mixed|tok:13a|version:2.4")],
    }
    return Card(**{**values, **changes})


def test_the_card_says_what_it_was_given(tmp_path: Path) -> None:
    write_card(tmp_path, make_card(), RECORDS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "curve.png"]
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# de-en\n")
    assert "dragoman translate --model de-en" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Data", "## Model", "## Training", "## Scores", "## Curve"
    ]  # fmt: skip
    assert "| training text | train.de → train.en |" in text
    assert "| BLEU, validation | 12.34 | nrefs:1\\|case:mixed\\|tok:13a\\|version:2.4 |" in text
    assert "](curve.png)" in text


def test_without_scores_there_is_no_such_section(tmp_path: Path) -> None:
    write_card(tmp_path, make_card(scores=[]), RECORDS[:1])
    assert "## Scores" not in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_name_cannot_break_the_table_or_become_mark_up(tmp_path: Path) -> None:
    write_card(tmp_path, make_card(data=[("training text", "a|b\n<script>*_`[x](y)\\")]), [])
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| training text | a\\|b \\<script\\>\\*\\_\\`\\[x\\](y)\\\\ |\n" in text


@pytest.mark.parametrize("records", [RECORDS, RECORDS[:2], RECORDS[2:3], []], ids=["all", "loss", "valid", "none"])
def test_the_curve_is_a_picture(tmp_path: Path, records: list[dict[str, object]]) -> None:
    """Also when some or all of its lines are missing."""
    draw_curve(records, tmp_path / "curve.png")
    content = (tmp_path / "curve.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (770, 396)
