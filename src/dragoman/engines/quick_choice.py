"""Among which ids a search with shortlists chooses: one projection for all sentences together, a list for each."""

# Letters: B sentences, N rows, D d_model, V vocabulary or shortlist.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dragoman.engines.products import Bfloat16Linear, Int8Linear
from dragoman.search.step import Hypothesis


@dataclass(frozen=True, slots=True)
class Choice:
    """The ids among which the next token is chosen: what search sees are their places."""

    ids_V: Tensor | None  # ascending; None: all
    allowed_BV: Tensor | None  # 0 for those of the sentence, else -inf
    project: Int8Linear | Bfloat16Linear

    def ids(self, places: Tensor) -> Tensor:
        """The ids at these places."""
        return places if self.ids_V is None else self.ids_V[places]

    def id_at(self, place: int) -> int:
        """The id at a place."""
        return place if self.ids_V is None else int(self.ids_V[place])

    def places(self, ids: Sequence[int]) -> list[int]:
        """Where these ids are; all sentences may use them."""
        found = torch.tensor(ids) if self.ids_V is None else torch.searchsorted(self.ids_V, torch.tensor(ids))
        return cast("list[int]", found.tolist())

    def named(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """What was found, with ids in place of places."""
        return [replace(one, ids=tuple(self.id_at(place) for place in one.ids)) for one in hypotheses]

    def log_probs(self, x_ND: Tensor) -> Tensor:
        """log_probs_NV, of what a sentence may not use -inf."""
        logits_NV = self.project(x_ND)
        if self.allowed_BV is not None:
            n_sentences, n_ids = self.allowed_BV.shape
            logits_NV.view(n_sentences, -1, n_ids).add_(self.allowed_BV[:, None])
        return logits_NV.log_softmax(dim=-1)

    def of(self, shortlists: Sequence[np.ndarray]) -> Choice:
        """Of sentences with these shortlists, whose ids are all among ours."""
        if self.ids_V is None:
            return self
        allowed_BV = torch.full((len(shortlists), len(self.ids_V)), -math.inf)
        for allowed_V, ids in zip(allowed_BV, shortlists, strict=True):
            allowed_V[torch.searchsorted(self.ids_V, torch.from_numpy(ids))] = 0
        return replace(self, allowed_BV=allowed_BV)

    def select(self, sentences: Tensor) -> Choice:
        return self if self.allowed_BV is None else replace(self, allowed_BV=self.allowed_BV[sentences])

    def joined(self, others: Choice) -> Choice:
        """Of the sentences of both, which choose among the same ids."""
        assert self.ids_V is others.ids_V
        if self.allowed_BV is None or others.allowed_BV is None:
            return self
        return replace(self, allowed_BV=torch.cat([self.allowed_BV, others.allowed_BV]))
