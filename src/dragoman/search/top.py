"""The largest values of each row, with equal values in a known order."""

# Letters: N rows, V vocabulary, K the number asked for.

from __future__ import annotations

from torch import Tensor


def top(values_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and their places, largest first; of equal values the earlier first.

    `torch.topk` is fast but does not say which of several equal values it takes, nor in which order.
    One value more than asked for shows whether equal values were parted; the rare rows where they were
    are sorted in full.
    """
    if k >= values_NV.shape[1]:
        values_NK, places_NK = values_NV.sort(dim=1, descending=True, stable=True)
        return values_NK, places_NK
    more_NK, places_NK = values_NV.topk(k + 1, dim=1)
    is_parted_N = more_NK[:, k - 1] == more_NK[:, k]
    places_NK = places_NK[:, :k].sort(dim=1).values
    values_NK, order_NK = values_NV.gather(1, places_NK).sort(dim=1, descending=True, stable=True)
    places_NK = places_NK.gather(1, order_NK)
    if is_parted_N.any():
        all_values, all_places = values_NV[is_parted_N].sort(dim=1, descending=True, stable=True)
        values_NK[is_parted_N] = all_values[:, :k]
        places_NK[is_parted_N] = all_places[:, :k]
    return values_NK, places_NK
