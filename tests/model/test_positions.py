"""Positions: the paper's table, learned rows, and none."""

from __future__ import annotations

import math

import pytest
import torch
from small_models import BOS, sentences, small_config, small_model

from dragoman.errors import DataError
from dragoman.model.positions import Positions, sinusoids


@pytest.mark.parametrize("d_model", [2, 8, 7, 96])
def test_sinusoids_are_the_papers(d_model: int) -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same; section 3.5, literally."""
    table = sinusoids(40, d_model)
    assert table.dtype == torch.float64
    for pos in range(40):
        for dimension in range(d_model):
            i = dimension // 2
            angle = pos / 10_000 ** (2 * i / d_model)
            expected = math.sin(angle) if dimension == 2 * i else math.cos(angle)
            assert table[pos, dimension].item() == pytest.approx(expected, rel=0, abs=1e-13)


def test_a_shift_is_a_rotation() -> None:
    """The paper's reason for them: PE(pos + k) is a linear function of PE(pos), the same for every pos."""
    table, k = sinusoids(50, 8), 7
    for i in range(4):
        turn = k / 10_000 ** (2 * i / 8)
        rotation = torch.tensor(
            [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=torch.float64
        )
        pair = table[:, 2 * i : 2 * i + 2]
        torch.testing.assert_close(pair[k:], pair[:-k] @ rotation.T, rtol=0, atol=1e-13)


def test_the_table_grows() -> None:
    positions = Positions(small_config(max_len_tokens=4))
    x = torch.zeros(1, 3, 8)
    assert len(positions.table_TD) == 4
    torch.testing.assert_close(positions(x, 9)[0], sinusoids(12, 8).float()[9:], rtol=0, atol=0)
    assert len(positions.table_TD) >= 12
    torch.testing.assert_close(positions(x)[0], sinusoids(3, 8).float(), rtol=0, atol=0)
    assert not positions.state_dict()  # computed, not stored


def test_a_model_reads_more_than_max_len_tokens_and_still_trains() -> None:
    """The table may have grown while translating, in inference mode; the next update must not mind."""
    model, long_model = small_model(max_len_tokens=4), small_model(max_len_tokens=64)
    src, tgt = sentences(2, 20), sentences(2, 11, seed=1)
    with torch.inference_mode():
        assert torch.equal(model(src, tgt), long_model(src, tgt))
    model(src, tgt).sum().backward()
    assert model.embedding.weight.grad is not None


def test_learned_positions_end() -> None:
    model = small_model(positions="learned", max_len_tokens=6)
    assert model(sentences(2, 6), sentences(2, 6)).isfinite().all()
    with pytest.raises(DataError, match="a sentence of 7 tokens is longer than the 6 positions learned") as caught:
        model(sentences(2, 7), sentences(2, 6))
    assert "max_len_tokens" in (caught.value.hint or "")
    with pytest.raises(DataError, match="a sentence of 8 tokens"):
        model(sentences(2, 6), sentences(2, 8))
    cache = model.start(sentences(1, 3))
    for _ in range(6):
        _, cache = model.step(torch.tensor([BOS]), cache)
    with pytest.raises(DataError, match="a sentence of 7 tokens"):
        model.step(torch.tensor([BOS]), cache)


def test_each_side_learns_its_own() -> None:
    positions = Positions(small_config(positions="learned"))
    x = torch.randn(2, 5, 8)
    assert torch.equal(positions(x, 3) - x, (x + positions.learned.weight[3:8]) - x)
    names = dict(small_model(positions="learned").named_parameters())
    assert {"src_positions.learned.weight", "tgt_positions.learned.weight"} <= names.keys()


def test_none_adds_nothing() -> None:
    """And then the encoder cannot tell the order of words: the logits after bos do not change with it."""
    x = torch.randn(2, 5, 8)
    assert Positions(small_config(positions="none"))(x, 2) is x
    model, src, bos = small_model(positions="none"), sentences(1, 6), torch.tensor([[BOS]])
    torch.testing.assert_close(model(src, bos), model(src.flip(1), bos), rtol=0, atol=1e-12)
    ordered = small_model()
    assert (ordered(src, bos) - ordered(src.flip(1), bos)).abs().max() > 1e-3
