"""The training pass without padding is the model's own: values and gradients, for every variant of the model.

The reference is the model in double precision; float32 alone is 1e-6 away from it.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from toy_tasks import PAD, batch_of, make_model, random_sentences

from dragoman.batches.batch import Batch
from dragoman.model.transformer import Transformer
from dragoman.train.packed import functions
from dragoman.train.packed.forward import hidden_of, pack
from dragoman.train.packed.functions import Drops

VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"activation": "gelu", "attention_bias": True},
    {"activation": "swiglu", "norm": "pre", "positions": "learned", "tie_embeddings": False},
    {"d_k": 5, "d_v": 3, "attention_bias": True, "norm": "pre"},
    {"attention_scale": False, "positions": "none"},
    {"d_model": 40, "n_heads": 5, "d_ff": 17, "n_encoder_layers": 1, "n_decoder_layers": 3},
]


def a_model(**changes: Any) -> Transformer:
    """No weight is at a special value: biases and norms are drawn at random too."""
    model = make_model(1, **{"n_encoder_layers": 2, "n_decoder_layers": 2, **changes})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def a_batch(n: int = 9, longest: int = 12) -> Batch:
    """Lengths that differ, in no order, and a longest one on either side alone."""
    srcs, tgts = random_sentences(n, 1, longest=longest), random_sentences(n, 2, longest=longest)
    return batch_of(list(zip(srcs, tgts, strict=True)))


def without_padding(
    model: Transformer, batch: Batch, n_times: int = 1, p: float = 0.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    src = pack(batch.src_BS, batch.src_BS != PAD, n_times)
    tgt = pack(batch.tgt_in_BT, batch.tgt_out_BT != PAD, n_times)
    return hidden_of(model, src, tgt, Drops(p, [4]), dtype)


def with_padding(model: Transformer, batch: Batch) -> Tensor:
    return model.hidden(batch.src_BS, batch.tgt_in_BT)[batch.tgt_out_BT != PAD]


def gradients(model: Transformer, hidden: Tensor) -> list[Tensor]:
    """By every weight that takes part, of a sum that treats no value like another."""
    generator = torch.Generator().manual_seed(7)
    incoming = torch.randn(hidden.shape, dtype=torch.float64, generator=generator).to(hidden.dtype)
    parameters = [parameter for name, parameter in model.named_parameters() if not name.startswith("projection")]
    return list(torch.autograd.grad(hidden, parameters, incoming))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_it_is_the_models_own_pass(variant: dict[str, Any]) -> None:
    model, batch = a_model(**variant), a_batch()
    exact = copy.deepcopy(model).double()
    expected, found = with_padding(exact, batch), without_padding(model, batch)
    assert found.shape == (batch.n_tgt_tokens, model.config.d_model)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-5)
    pairs = list(zip(gradients(model, found), gradients(exact, expected), strict=True))
    largest = max(torchs.abs().max().item() for _, torchs in pairs)
    for mine, torchs in pairs:
        torch.testing.assert_close(mine.double(), torchs, rtol=0, atol=2e-5 * largest)


def test_sentences_may_be_worked_on_in_any_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = a_model(), a_batch(23)
    whole = without_padding(model, batch)
    expected = gradients(model, whole)
    for values in (1, 16 * 13 * 5):  # a sentence at a time, and five
        monkeypatch.setattr(functions, "_VALUES_AT_A_TIME", values)
        found = without_padding(model, batch)
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)
        for one, other in zip(gradients(model, found), expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_one_word_on_each_side() -> None:
    model, batch = a_model(), batch_of([([], [])])
    assert batch.src_BS.shape == batch.tgt_in_BT.shape == (1, 1)
    exact = copy.deepcopy(model).double()
    torch.testing.assert_close(without_padding(model, batch).double(), with_padding(exact, batch), rtol=0, atol=1e-5)


def test_neighbours_change_nothing() -> None:
    """Nor does how much shorter they are."""
    model, batch = a_model(), a_batch()
    rows, start = without_padding(model, batch), 0
    for pair in batch.parts(len(batch.indices), pad_id=PAD):
        alone = without_padding(model, pair)
        torch.testing.assert_close(rows[start : start + len(alone)], alone, rtol=0, atol=1e-5)
        start += len(alone)
    assert start == len(rows)


def test_two_readings_drop_otherwise() -> None:
    model, batch = a_model(dropout=0.3), a_batch()
    one, other = without_padding(model, batch, 2, p=0.3).view(2, batch.n_tgt_tokens, -1)
    assert (one != other).any(dim=1).all()
    same, again = without_padding(model, batch, 2).view(2, batch.n_tgt_tokens, -1)
    torch.testing.assert_close(same, again, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_gradient_is_that_of_what_was_dropped(norm: str) -> None:
    """By finite differences along the gradient: what a pass drops is the same whatever the weights are."""
    model, batch = a_model(norm=norm, dropout=0.4), a_batch()
    incoming = torch.randn(batch.n_tgt_tokens, 16, generator=torch.Generator().manual_seed(7))

    def value() -> Tensor:
        return (without_padding(model, batch, p=0.4) * incoming).double().sum()

    parameters = list(model.parameters())
    found = torch.autograd.grad(value(), parameters)
    length = math_norm(found)
    step, values = 3e-3 / length, []
    for sign in (1, -1):
        with torch.no_grad():
            for parameter, gradient in zip(parameters, found, strict=True):
                parameter.add_(gradient, alpha=sign * step)
            values.append(value().item())
            for parameter, gradient in zip(parameters, found, strict=True):
                parameter.sub_(gradient, alpha=sign * step)
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(length**2, rel=0.01)


def math_norm(tensors: tuple[Tensor, ...]) -> float:
    return sum(tensor.double().square().sum().item() for tensor in tensors) ** 0.5


def test_products_of_bfloat16_alone_are_rounded() -> None:
    model, batch = a_model(), a_batch()
    exact, rounded = without_padding(model, batch), without_padding(model, batch, dtype=torch.bfloat16)
    assert rounded.dtype == torch.float32
    assert 1e-4 < (rounded - exact).abs().max() < 0.3
    for one, two in zip(gradients(model, rounded), gradients(model, exact), strict=True):
        assert one.dtype == torch.float32
        assert torch.nn.functional.cosine_similarity(one.flatten(), two.flatten(), dim=0) > 0.99


def test_what_is_not_a_number_stays_so() -> None:
    """A run has to stop at it, so that no loop may turn it into one."""
    model, batch = a_model(), a_batch()
    with torch.no_grad():
        model.encoder[0].feed_forward.inner.bias[0] = torch.nan
    assert without_padding(model, batch).isnan().all()
