"""A matrix in bytes, each of its rows with a scale; needs numpy, not torch."""

# Letters: O outputs, I inputs.

from __future__ import annotations

from typing import Any, Literal

import numpy as np

SumBits = Literal[16, 32]  # in which a processor adds up products of bytes

_LEVELS = 127  # of a byte, on each side of zero
_LEAST = 1e-10  # in place of the largest weight of a row of zeros


def to_bytes(weight_OI: np.ndarray[Any, Any], sum_bits: SumBits) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The rows in int8 and their scales: a weight is its byte over the scale of its row, which is as fine as can be.

    Where products of bytes are added up in 32 bits, the largest weight of a row gets the last level. In 16 bits, two
    neighbours' products with unsigned inputs of up to 255 are added first, and the sum stays at 32,767 where it should
    be more, silently. So there, two neighbours of the same sign share the levels: 255 * (127 + 1) is still exact, the
    one being for rounding. Of different signs, they take from each other, and neither is limited.
    """
    most_O = np.abs(weight_OI).max(axis=1)
    if sum_bits == 16:
        n_rows, n_inputs = weight_OI.shape
        pairs = np.pad(weight_OI, ((0, 0), (0, n_inputs % 2))).reshape(n_rows, -1, 2)
        most_O = np.maximum(*(np.maximum(sign * pairs, 0).sum(axis=2).max(axis=1) for sign in (1, -1)))
    scale_O = (_LEVELS / np.maximum(most_O, _LEAST)).astype(np.float32)
    return np.rint(weight_OI * scale_O[:, None]).astype(np.int8), scale_O
