"""Our weights in CTranslate2: the same numbers from every variant of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from dragoman.checkpoint.ct2 import write_ct2
from dragoman.engines.processor import sum_bits
from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(36))]
BOS, EOS = 2, 3
VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu", "norm": "pre"},
    "learned positions": {"positions": "learned", "max_len_tokens": 24},
    "no positions": {"positions": "none"},
    "untied": {"tie_embeddings": False},
    "biases in attention": {"attention_bias": True},
    "unscaled": {"attention_scale": False},
    "other heads": {"d_k": 12, "d_v": 12},
    "unequal depths": {"n_encoder_layers": 3, "n_decoder_layers": 1},
}


def make_model(**changes: Any) -> Transformer:
    """A model whose every weight matters: norms and biases too are random."""
    settings = {"vocab_size": len(PIECES), "d_model": 32, "d_ff": 48, "n_heads": 4, "max_len_tokens": 64}
    settings |= {"n_encoder_layers": 2, "n_decoder_layers": 2}
    torch.manual_seed(7)
    model = Transformer(ModelConfig(**(settings | changes))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def convert(model: Transformer, folder: Path, precision: str = "float32") -> ctranslate2.Translator:
    folder.mkdir()
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    write_ct2(folder, model.config, weights, PIECES, sum_bits() if precision == "int8" else None)
    return ctranslate2.Translator(str(folder), compute_type=precision, intra_threads=1)


def sentences(seed: int) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(4, len(PIECES), rng.integers(1, 15)).tolist(), rng.integers(4, len(PIECES), n).tolist())
        for n in rng.integers(1, 15, 12)
    ]


def our_log_probs(model: Transformer, src: list[int], tgt: list[int]) -> torch.Tensor:
    logits = model(torch.tensor([[*src, EOS]]), torch.tensor([[BOS, *tgt]]))[0]
    return logits.log_softmax(dim=-1)[torch.arange(len(tgt) + 1), torch.tensor([*tgt, EOS])]


@torch.no_grad()
@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_log_probabilities(name: str, tmp_path: Path) -> None:
    model = make_model(**VARIANTS[name])
    pairs = sentences(1)
    theirs = convert(model, tmp_path / "ct2").score_batch(
        [[PIECES[i] for i in src] for src, _ in pairs], [[PIECES[i] for i in tgt] for _, tgt in pairs]
    )
    for (src, tgt), result in zip(pairs, theirs, strict=True):
        ours = our_log_probs(model, src, tgt)
        assert result.tokens == [*(PIECES[i] for i in tgt), "</s>"]
        torch.testing.assert_close(torch.tensor(result.log_probs), ours, atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("kept", [None, [0, 2], [1, 3], [1, 2]])
def test_int8_is_near(kept: list[int] | None, tmp_path: Path) -> None:
    """Also where of four neighbours only two are not zero, so that the others' levels are theirs, wherever they are."""
    model = make_model()
    if kept is not None:
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embedding" not in name:
                is_kept = torch.isin(torch.arange(parameter.shape[1]) % 4, torch.tensor(kept))
                parameter.copy_(parameter.sign() * is_kept * parameter.abs().mean())
    pairs = sentences(2)
    theirs = convert(model, tmp_path / "ct2", "int8").score_batch(
        [[PIECES[i] for i in src] for src, _ in pairs], [[PIECES[i] for i in tgt] for _, tgt in pairs]
    )
    differences = torch.cat(
        [torch.tensor(r.log_probs) - our_log_probs(model, *pair) for pair, r in zip(pairs, theirs, strict=True)]
    )
    assert 0 < differences.abs().mean() < 0.05


def test_heads_it_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="keys of width 8 and values of width 16"):
        convert(make_model(d_k=8, d_v=16), tmp_path / "ct2")
