"""What a head does in a sentence, in numbers: how sharply and how far it looks, and what it tends to look at."""

# Letters: T rows (queries), S columns (keys).

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dragoman.explain.heads import Kind

_CLEAR = 0.4  # of its weight a head gives to what it is named after, at least, and twice as much as by chance
_BROAD = 0.8  # of the entropy of looking at everything alike: from here on it looks everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What stands at the rows and columns of a matrix."""

    row_words: Sequence[int]
    column_words: Sequence[int]
    columns: Sequence[str]  # pieces
    aligned: Sequence[int | None] = ()  # between two texts: for each word of the rows that of the columns it renders


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Means over the rows of a matrix."""

    entropy: float  # in bits
    distance: float  # in tokens from the row's own place; between two texts, from the place at the same fraction
    shares: dict[str, float]  # of the weight, by what is looked at; they may overlap
    tendency: str  # the share that stands out, "everywhere" or "mixed"

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        found["entropy"], found["distance"] = round(self.entropy, 4), round(self.distance, 4)
        found["shares"] = {name: round(share, 4) for name, share in self.shares.items()}
        return found


def habits(weights_TS: np.ndarray, kind: Kind, sides: Sides) -> Habits:
    """What a head does, of the kind given, from its weights."""
    n_rows, n_columns = weights_TS.shape
    rows, columns = np.arange(n_rows)[:, None], np.arange(n_columns)[None, :]
    logs = np.log2(np.where(weights_TS > 0, weights_TS, 1))
    entropy_T = -(weights_TS * logs).sum(axis=1)
    place = rows * ((n_columns - 1) / max(1, n_rows - 1)) if kind == "cross" else rows
    may_see = columns <= rows if kind == "decoder" else np.ones((n_rows, n_columns), dtype=bool)
    looked_at = {name: mask & may_see for name, mask in _relations(rows, columns, kind, sides).items()}
    shares = {name: _share(weights_TS, mask) for name, mask in looked_at.items()}
    chance = {name: _share(may_see / may_see.sum(axis=1, keepdims=True), mask) for name, mask in looked_at.items()}
    most = float(np.log2(may_see.sum(axis=1)).mean())
    entropy = float(entropy_T.mean())
    return Habits(
        entropy=entropy,
        distance=float((weights_TS * np.abs(columns - place)).sum(axis=1).mean()),
        shares=shares,
        tendency=_tendency(shares, chance, entropy / most if most > 0 else 0.0),
    )


def _relations(rows: np.ndarray, columns: np.ndarray, kind: Kind, sides: Sides) -> dict[str, np.ndarray]:
    """By name, the cells of the matrix in which a row looks at such a column."""
    row_words, column_words = np.asarray(sides.row_words)[:, None], np.asarray(sides.column_words)[None, :]
    delimiters = np.array([is_delimiter(piece) for piece in sides.columns])[None, :] & (rows >= 0)
    if kind == "cross":
        renders = np.array([-1 if word is None else word for word in sides.aligned])
        return {"aligned word": renders[row_words] == column_words, "delimiter": delimiters}
    found = {"previous token": columns == rows - 1, "same word": row_words == column_words, "delimiter": delimiters}
    return found if kind == "decoder" else {**found, "next token": columns == rows + 1}


def _share(weights_TS: np.ndarray, mask_TS: np.ndarray) -> float:
    """The mean weight on what the mask marks, over the rows that have any of it."""
    has_any_T = mask_TS.any(axis=1)
    return float((weights_TS * mask_TS).sum(axis=1)[has_any_T].mean()) if has_any_T.any() else 0.0


def _tendency(shares: dict[str, float], chance: dict[str, float], evenness: float) -> str:
    """What has most of the weight above chance, if that is much; a head that looks at all alike has no such thing."""
    if evenness >= _BROAD:
        return "everywhere"
    name = max(shares, key=lambda name: shares[name] - chance[name])
    return name if shares[name] >= max(_CLEAR, 2 * chance[name]) else "mixed"


def is_delimiter(piece: str) -> bool:
    """Whether a piece is punctuation alone, or the beginning or end of a sentence."""
    if piece in ("<s>", "</s>"):
        return True
    text = piece.strip("▁")
    return text != "" and all(unicodedata.category(character).startswith("P") for character in text)
