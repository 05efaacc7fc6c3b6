"""What is pure in benchmarks/budget_choice: how texts are cut, and the comparison."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from benchmarks.budget_choice.report import table
from benchmarks.budget_choice.run import corpus_of


def trained(seconds: float, test_bleu: float) -> dict[str, Any]:
    return {
        "seconds": seconds, "updates": 1234, "d_model": 160, "n_layers": 3, "valid_bleu": 30.0, "test_bleu": test_bleu,
    }  # fmt: skip


def test_the_plan_is_held_against_the_better_preset() -> None:
    """A text whose presets have not been trained yet has no comparison."""
    europarl = {"plan": trained(594, 20.5), "tiny": trained(600, 20.0), "small": trained(606, 21.0)}
    texts = {"europarl": europarl, "tatoeba-en-de": {"plan": trained(600, 30.0)}}
    found = table({"budget": "10m", "threads": 2, "texts": texts})
    assert "| europarl | **the plan** | 160 | 3 + 3 | 1,234 | 594.0 s, 99.0% | 30.00 | 20.50 |" in found
    assert "- europarl: -0.50 (`small`)" in found
    assert "- tatoeba" not in found


def test_the_end_of_europarl_is_kept_out_of_training(tmp_path: Path) -> None:
    folder = tmp_path / "europarl"
    folder.mkdir()
    for language in ("en", "de"):
        with gzip.open(folder / f"train.en-de.{language}.gz", "wb") as file:
            file.writelines(f"{language} {i}\n".encode() for i in range(2500))
    corpus = corpus_of("europarl", tmp_path, tmp_path / "cut")
    for part, first, n_lines in ((corpus.train, 0, 500), (corpus.test, 500, 2000)):
        for language, path in zip(("en", "de"), corpus.sides(part), strict=True):
            lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
            assert lines == [f"{language} {i}" for i in range(first, first + n_lines)]
