"""The largest values of each row, with equal values in a known order."""

# Letters: N rows, V vocabulary, K the number asked for, B blocks, M candidates.

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 64
_FEWEST_BLOCKS = 5  # for each value asked for, from which on blocks pay


def top(values_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and their places, largest first; of equal values the earlier first.

    `torch.topk` is fast but does not say which of several equal values it takes, nor in which order.
    One value more than asked for shows whether equal values were parted; the rare rows where they were
    are sorted in full.
    """
    if k >= values_NV.shape[1]:
        values_NK, places_NK = values_NV.sort(dim=1, descending=True, stable=True)
        return values_NK, places_NK
    more_NK, places_NK = _topk(values_NV, k + 1)
    is_parted_N = more_NK[:, k - 1] == more_NK[:, k]
    places_NK = places_NK[:, :k].sort(dim=1).values
    values_NK, order_NK = values_NV.gather(1, places_NK).sort(dim=1, descending=True, stable=True)
    places_NK = places_NK.gather(1, order_NK)
    if is_parted_N.any():
        all_values, all_places = values_NV[is_parted_N].sort(dim=1, descending=True, stable=True)
        values_NK[is_parted_N] = all_values[:, :k]
        places_NK[is_parted_N] = all_places[:, :k]
    return values_NK, places_NK


def _topk(values_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `torch.topk`, but faster for long rows: the k largest are in the k blocks with the largest maxima."""
    n_blocks = values_NV.shape[1] // _BLOCK
    if n_blocks < _FEWEST_BLOCKS * k:
        return values_NV.topk(k, dim=1)
    n_whole = n_blocks * _BLOCK
    most_NB = values_NV[:, :n_whole].reshape(len(values_NV), n_blocks, _BLOCK).amax(dim=2)
    starts_NK1 = most_NB.topk(k, dim=1).indices[:, :, None] * _BLOCK
    inside = torch.arange(_BLOCK, device=values_NV.device)
    rest = torch.arange(n_whole, values_NV.shape[1], device=values_NV.device)
    places_NM = torch.cat([(starts_NK1 + inside).flatten(1), rest.expand(len(values_NV), -1)], dim=1)
    values_NK, order_NK = values_NV.gather(1, places_NM).topk(k, dim=1)
    return values_NK, places_NM.gather(1, order_NK)
