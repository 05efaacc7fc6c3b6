"""The demo, with a smaller corpus and fewer steps than it has for people."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dragoman.text.builtin
from dragoman.cli import demo
from dragoman.cli.main import run
from dragoman.text.builtin import builtin_corpus
from dragoman.translator import Attention


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = demo._settings

    def fewer_steps(corpus: Path) -> dict[str, dict[str, object]]:
        full = settings(corpus)
        full["train"] |= {"steps": 6, "warmup_steps": 2, "log_every": 3, "valid_every": 3, "save_every": 3}
        full["model"] |= {"d_model": 32, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1}
        return full

    monkeypatch.setattr(demo, "_settings", fewer_steps)
    small = partial(builtin_corpus, n_train=300, n_valid=10, n_test=10)
    monkeypatch.setattr(dragoman.text.builtin, "builtin_corpus", small)


def test_demo_trains_scores_translates_and_shows_attention(
    small_demo: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    assert run(["demo", "--out", str(out), "--threads", "1"]) == 0
    shown = capsys.readouterr()
    assert "exact match" in shown.out
    assert "nrefs:1|case:mixed" in shown.out
    assert "reference" in shown.out
    assert "</s>" in shown.out  # the attention map's last row
    assert "step 6/6" in shown.err
    assert (tmp_path / "demo-corpus" / "test.de").is_file()

    assert run(["demo", "--out", str(out), "--threads", "1"]) == 0  # again: shows the finished model
    again = capsys.readouterr()
    assert "is finished" in again.err
    assert again.out == shown.out

    assert run(["inspect", str(out)]) == 0
    assert "validation BLEU" in capsys.readouterr().out


def test_heat_map_is_darkest_where_the_weight_is() -> None:
    cross = np.array([[[[0.9, 0.1], [0.1, 0.9]]]])
    weights = np.ones((1, 1, 2, 2)) / 2
    attention = Attention(
        src_tokens=("▁Hund", "</s>"),
        tgt_tokens=("▁dog", "</s>"),
        tgt_in_tokens=("<s>", "▁dog"),
        encoder=weights,
        decoder=weights,
        cross=cross,
    )
    assert demo.heat_map(attention).splitlines() == ["      Hund </s>", " dog  ████", "</s>       ████"]
