"""Masks: boolean, True means "may look"."""

from __future__ import annotations

import pytest
import torch

from dragoman.model.masks import causal_mask, padding_mask

CPU = torch.device("cpu")


def test_padding() -> None:
    mask = padding_mask(torch.tensor([[5, 6, 9], [5, 9, 9], [9, 9, 9]]), pad_id=9)
    assert mask.dtype == torch.bool
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False], [False, False, False]]


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 1), (4, 4), (1, 5), (2, 5)])
def test_causal(n_queries: int, n_keys: int) -> None:
    """The last query stands at the last key; none sees a key after its own."""
    mask = causal_mask(n_queries, n_keys, CPU)
    assert mask.dtype == torch.bool
    assert mask.shape == (1, 1, n_queries, n_keys)
    n_past = n_keys - n_queries
    for query in range(n_queries):
        assert mask[0, 0, query].tolist() == [key <= n_past + query for key in range(n_keys)]
