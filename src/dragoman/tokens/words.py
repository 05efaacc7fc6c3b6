"""Words made of subwords: which subwords are one word, and which words of a pair belong together."""

# Letters: S source length, T target length.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def aligned_words(cross_TS: np.ndarray, src_words: Sequence[int], tgt_words: Sequence[int]) -> list[int]:
    """For each target word the source word that its tokens looked at most; `…_words` are the numbers of the words."""
    if not src_words or not tgt_words:
        return []
    mass = np.zeros((tgt_words[-1] + 1, src_words[-1] + 1))
    np.add.at(mass, (np.array(tgt_words)[:, None], np.array(src_words)[None, :]), cross_TS)
    return [int(row.argmax()) for row in mass]


def word_numbers(pieces: Sequence[str]) -> list[int]:
    """The number of the word each piece belongs to, words being divided by spaces."""
    words, word, is_open = [], 0, False
    for piece in pieces:
        if piece.startswith("▁") and is_open:
            word, is_open = word + 1, False
        words.append(word)
        is_open = is_open or piece.strip("▁") != ""  # spaces alone begin no word
    return words
