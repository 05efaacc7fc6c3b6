"""The only place masks are made. Boolean, True means "may look", broadcastable to (B, H, T, S)."""

# Letters: B batch, H heads, T query length, S key length.

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids_BS: Tensor, pad_id: int) -> Tensor:
    """Which keys are words rather than padding, as (B, 1, 1, S)."""
    return (ids_BS != pad_id)[:, None, None, :]


def causal_mask(n_queries: int, n_keys: int, device: torch.device) -> Tensor:
    """Which keys a query may see, as (1, 1, T, S): itself and those before it (paper section 3.2.3).

    The last query stands at the last key, so that with a cache the earlier keys are all visible.
    """
    may_see_TS = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)
    return may_see_TS[None, None]
