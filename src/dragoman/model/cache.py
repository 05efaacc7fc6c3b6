"""What decoding remembers between two tokens: a value passed in and handed back, never hidden in a layer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dragoman.model.attention import KeyValues


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values per decoder layer: of the source, made once, and of the target tokens so far.

    The rows advance in step: `n_tokens` is the position of the next token of every row.
    """

    memory: tuple[KeyValues, ...]
    past: tuple[KeyValues | None, ...]
    src_may_see: Tensor
    n_tokens: int = 0

    def select(self, rows: Tensor) -> Cache:
        """The cache of the rows named, in that order: repeated for beams, fewer when sentences have finished."""
        rows = rows.to(self.src_may_see.device)
        return Cache(
            memory=tuple(kv.select(rows) for kv in self.memory),
            past=tuple(kv and kv.select(rows) for kv in self.past),
            src_may_see=self.src_may_see.index_select(0, rows),
            n_tokens=self.n_tokens,
        )
