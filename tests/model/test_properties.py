"""What holds for every batch: padding and neighbours do not matter, the future is hidden, the cache changes nothing.

Double precision, so that 1e-12 leaves room for another order of addition and for nothing else.
"""

from __future__ import annotations

import functools

import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import BOS, pad_to, small_model
from torch import Tensor

from dragoman.model.transformer import Transformer

SAME = {"rtol": 0.0, "atol": 1e-12}

words = st.integers(4, 16)
sides = st.lists(words, min_size=1, max_size=9).map(torch.tensor)
pairs = st.tuples(sides, sides)
variants = st.sampled_from(
    [
        (),
        (("norm", "pre"),),
        (("positions", "learned"), ("activation", "swiglu")),
        (("positions", "none"), ("tie_embeddings", False)),
        (("d_k", 3), ("d_v", 5), ("attention_bias", True)),
    ]
)


@functools.cache
def model_of(variant: tuple[tuple[str, object], ...]) -> Transformer:
    return small_model(7, **dict(variant)).eval().requires_grad_(False)


def with_bos(tgt: Tensor) -> Tensor:
    return torch.cat([torch.tensor([BOS]), tgt])


@given(st.lists(pairs, min_size=1, max_size=4), variants, st.integers(0, 3), st.integers(0, 3), st.randoms())
def test_padding_and_neighbours_change_nothing(batch, variant, more_src, more_tgt, random) -> None:
    model = model_of(variant)
    random.shuffle(batch)
    srcs, tgts = [src for src, _ in batch], [with_bos(tgt) for _, tgt in batch]
    logits = model(
        pad_to(srcs, max(map(len, srcs)) + more_src),
        pad_to(tgts, max(map(len, tgts)) + more_tgt),
    )
    for row, (src, tgt) in enumerate(zip(srcs, tgts, strict=True)):
        alone = model(src[None], tgt[None])[0]
        torch.testing.assert_close(logits[row, : len(tgt)], alone, **SAME)


@given(pairs, variants, st.data())
def test_the_future_changes_no_earlier_logit(pair, variant, data) -> None:
    model, (src, tgt) = model_of(variant), pair
    tgt = with_bos(tgt)
    place = data.draw(st.integers(1, len(tgt) - 1))
    changed = tgt.clone()
    changed[place:] = torch.tensor([data.draw(words) for _ in tgt[place:]])
    before, after = model(src[None], tgt[None]), model(src[None], changed[None])
    assert torch.equal(before[:, :place], after[:, :place])  # a weight of exactly zero hides it: no tolerance


@given(pairs, variants)
def test_a_changed_token_changes_its_own_logits(pair, variant) -> None:
    """The counterpart: the mask hides the future, not the present, nor the source."""
    model, (src, tgt) = model_of(variant), pair
    tgt = with_bos(tgt)
    before = model(src[None], tgt[None])
    changed = tgt.clone()
    changed[-1] = 4 + (changed[-1] - 3) % 13
    assert (model(src[None], changed[None])[0, -1] - before[0, -1]).abs().max() > 1e-9
    other = src.clone()
    other[0] = 4 + (other[0] - 3) % 13
    assert (model(other[None], tgt[None])[0, 0] - before[0, 0]).abs().max() > 1e-9


@given(st.lists(sides, min_size=1, max_size=3), st.lists(words, min_size=1, max_size=6), variants)
def test_decoding_with_a_cache_is_the_forward_pass(srcs, tgt, variant) -> None:
    model = model_of(variant)
    src = pad_to(srcs, max(map(len, srcs)))
    tgts = torch.stack([with_bos((torch.tensor(tgt) + row - 4) % 13 + 4) for row in range(len(srcs))])
    expected = model(src, tgts).log_softmax(-1)
    cache = model.start(src)
    for place in range(tgts.shape[1]):
        assert cache.n_tokens == place
        log_probs, cache = model.step(tgts[:, place], cache)
        torch.testing.assert_close(log_probs, expected[:, place], **SAME)


@given(st.lists(sides, min_size=2, max_size=3), variants, st.data())
def test_the_cache_of_chosen_rows_goes_on_like_them(srcs, variant, data) -> None:
    """As beam search does: rows change places, are repeated and left out between two tokens."""
    model = model_of(variant)
    cache = model.start(pad_to(srcs, max(map(len, srcs))))
    prefixes: list[list[int]] = [[] for _ in srcs]
    owners = list(range(len(srcs)))
    for _ in range(3):
        last = [data.draw(words) if prefix else BOS for prefix in prefixes]
        for prefix, token in zip(prefixes, last, strict=True):
            prefix.append(token)
        log_probs, cache = model.step(torch.tensor(last), cache)
        for row, owner in enumerate(owners):
            alone = model(srcs[owner][None], torch.tensor([prefixes[row]]))[0, -1].log_softmax(-1)
            torch.testing.assert_close(log_probs[row], alone, **SAME)
        rows = data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, max_size=4))
        cache = cache.select(torch.tensor(rows))
        prefixes, owners = [list(prefixes[row]) for row in rows], [owners[row] for row in rows]


def test_a_cache_is_a_value() -> None:
    """Stepping from it twice gives the same twice: nothing is kept in the layers or changed in place."""
    model, src = model_of(()), torch.tensor([[4, 5, 6]])
    _, cache = model.step(torch.tensor([BOS]), model.start(src))
    first, _ = model.step(torch.tensor([7]), cache)
    model.step(torch.tensor([9]), cache)
    again, later = model.step(torch.tensor([7]), cache)
    assert torch.equal(first, again)
    assert (cache.n_tokens, later.n_tokens) == (1, 2)
