"""Matrices in bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dragoman.checkpoint.int8 import SumBits, to_bytes

matrices = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 9)),
    elements=st.floats(-100, 100, width=32).map(lambda x: 0.0 if abs(x) < 1e-3 else x),
)


@given(matrices, st.sampled_from([16, 32]))
def test_a_weight_is_off_by_half_a_step_at_most(weight_OI: np.ndarray, sum_bits: SumBits) -> None:
    q_OI, scale_O = to_bytes(weight_OI, sum_bits)
    assert q_OI.dtype == np.int8
    assert np.abs(q_OI / scale_O[:, None] - weight_OI).max() <= (0.501 / scale_O).max()
    assert np.abs(q_OI.astype(int)).max() <= 127


@given(matrices)
def test_sums_of_neighbours_fit_into_16_bits(weight_OI: np.ndarray) -> None:
    """Whatever the inputs: they are unsigned bytes."""
    q_OI = to_bytes(weight_OI, 16)[0].astype(int)
    for first in range(0, q_OI.shape[1], 2):
        pair_O2 = q_OI[:, first : first + 2]
        assert 255 * np.maximum(pair_O2, 0).sum(axis=1).max() <= 32_767
        assert 255 * np.minimum(pair_O2, 0).sum(axis=1).min() >= -32_768


@pytest.mark.parametrize(
    ("row", "sum_bits", "expected"),
    [
        ([2.0, 2.0, -1.0], 32, [127, 127, -64]),
        ([2.0, 2.0, -1.0], 16, [64, 64, -32]),  # neighbours of the same sign share the levels
        ([2.0, -2.0, -1.0], 16, [127, -127, -64]),  # of different signs they need not
        ([0.0, 2.0, 2.0, 0.0], 16, [0, 127, 127, 0]),  # nor where they are of two pairs
        ([0.0, 0.0, 0.0], 16, [0, 0, 0]),
    ],
)
def test_a_row_has_as_fine_a_scale_as_can_be(row: list[float], sum_bits: SumBits, expected: list[int]) -> None:
    assert to_bytes(np.array([row], dtype=np.float32), sum_bits)[0].tolist() == [expected]
