"""Where two files that should run in parallel come apart, judged by the lengths of their lines."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def find_split(long_chars: Iterable[int], short_chars: Iterable[int]) -> int:
    """The line (from 1) of the longer file where its surplus lines most likely begin.

    A line and its translation have similar lengths. With d lines too many, pairs (i, i) should agree
    before the surplus and pairs (i + d, i) after it; the split with the least total |log length ratio|
    is found with prefix sums. Holds one number per line and no text.
    """
    long = np.log1p(np.fromiter(long_chars, dtype=np.float32))
    short = np.log1p(np.fromiter(short_chars, dtype=np.float32))
    surplus = len(long) - len(short)
    usual = float(np.median(long) - np.median(short)) if len(short) else 0.0  # one language may be wordier
    gain = _mismatch(long[: len(short)], short, usual) - _mismatch(long[surplus:], short, usual)
    # cost[k] is, up to a constant, the mismatch with the first k lines aligned and the others shifted.
    cost = np.concatenate([[0.0], np.cumsum(gain, dtype=np.float64)])
    last_best = len(cost) - 1 - int(np.argmin(cost[::-1]))  # on a tie: surplus at the end, a cut-off file
    return last_best + 1


def _mismatch(long: npt.NDArray[np.float32], short: npt.NDArray[np.float32], usual: float) -> npt.NDArray[np.float32]:
    mismatch: npt.NDArray[np.float32] = np.abs(long - short - np.float32(usual))
    return mismatch
