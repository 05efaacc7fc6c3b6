"""What is pure in benchmarks/train_speed: the account of arithmetic, ratios and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.train_speed.flops import update_flops
from benchmarks.train_speed.report import draw, scaling, summarize, table
from benchmarks.train_speed.workers.protocol import Batch, Size
from torch.utils.flop_counter import FlopCounterMode

from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer


def measured(size: str, seconds: dict[str, tuple[float, ...]]) -> dict[str, Any]:
    """A run of 100 target tokens and 1000 operations a round, at a peak of 1000 operations a second."""

    def report(wall_s: float) -> dict[str, float]:
        return {"tgt_tokens": 100, "wall_s": wall_s, "cpu_s": wall_s, "peak_rss_mb": 7}

    n_rounds = len(next(iter(seconds.values())))
    rounds = [
        {"flops": 1000, "gemm_flops": 1000, "peers": {peer: report(times[r]) for peer, times in seconds.items()}}
        for r in range(n_rounds)
    ]
    about = {peer: {"version": "1", "parameters": 5} for peer in seconds}
    run = {"size": size, "threads": 1, "updates": 4, "about": about, "rounds": rounds}
    return run | {"summary": summarize(run)}


def test_the_best_peer_is_the_yardstick_of_ours() -> None:
    """Ratios are taken within a round: the machine was twice as slow in the second."""
    run = measured("tiny", {"ours": (2.0, 4.0, 2.0), "huggingface": (6.0, 12.0, 6.0), "fairseq": (4.0, 8.0, 4.0)})
    ours = run["summary"]["ours"]
    assert ours["best_peer"] == "fairseq"
    assert ours["ratio_to_best_peer"] == 2
    assert ours["ratio"] == 3
    assert ours["gemm_share"] == 0.5
    assert ours["tokens_per_s"] == 50
    assert "Dragoman / best peer (fairseq): 2.00, by CPU time 2.00" in table(run)


def test_what_a_second_thread_gives() -> None:
    """Of peers and sizes that were measured with both."""
    one = measured("tiny", {"ours": (2.0, 4.0, 2.0), "huggingface": (6.0, 12.0, 6.0), "sockeye": (9.0, 9.0, 9.0)})
    two = measured("tiny", {"ours": (1.0, 1.0, 1.0), "huggingface": (4.0, 4.0, 4.0)}) | {"threads": 2}
    lines = scaling([one, measured("base", {"ours": (1.0,)}), two]).splitlines()
    assert lines[2:] == [
        "| | tiny, 2 |",
        "| --- | ---: |",
        "| GEMM peak | 1.00 |",
        "| **Dragoman** | 2.00 |",
        "| Hugging Face Marian | 1.50 |",
    ]
    assert scaling([one]) == ""


def test_a_picture_of_runs_with_different_peers(tmp_path: Path) -> None:
    """A size that was measured again with fewer peers stands beside the others."""
    runs = [
        measured("tiny", {"ours": (1.0,), "huggingface": (2.0,), "sockeye": (3.0,)}),
        measured("base", {"ours": (1.0,), "huggingface": (2.0,)}),
    ]
    draw(runs, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_operations_are_those_that_a_counter_sees() -> None:
    """Of an update without padding, counted by PyTorch."""
    size, n_vocab, n_rows, s, t = Size(16, 24, 2, 2), 31, 3, 5, 4
    config = ModelConfig(
        vocab_size=n_vocab, d_model=16, d_ff=24, n_heads=2, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0
    )
    src, tgt = torch.full((n_rows, s), 5), torch.full((n_rows, t), 6)
    with FlopCounterMode(display=False) as counter:
        Transformer(config)(src, tgt).sum().backward()
    assert update_flops(size, n_vocab, Batch(src, tgt, tgt, s, t)) == pytest.approx(counter.get_total_flops())
