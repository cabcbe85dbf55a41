"""Standardization and gathering of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.kernel import ALIGNMENT, LARGE_PAGE, Moments, aligned, gather, moments


@given(
    st.integers(1, 1200), st.integers(1, 9), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 99)
)
def test_moments_are_numpys_in_float64(rows: int, dim: int, shift: float, scale: float, seed: int) -> None:
    """This holds for any number of chunks."""
    matrix = (np.random.RandomState(seed).standard_normal((rows, dim)) * scale + shift).astype(np.float32)
    scale_of = moments(matrix)
    wide = matrix.astype(np.float64)
    assert scale_of.mean == pytest.approx(wide.mean(), rel=1e-12, abs=1e-12 * scale)
    assert scale_of.std == pytest.approx(wide.std(), rel=1e-9)


def test_a_small_deviation_survives_a_large_mean() -> None:
    """A single pass with sums of squares would lose it."""
    matrix = np.array([[1e6, 1e6 + 1]], dtype=np.float32)
    assert moments(matrix) == Moments(mean=1e6 + 0.5, std=0.5)


def test_gathered_rows_are_standardized_aligned_and_in_order() -> None:
    """Row i of the result is row index[i] of the matrix, for more rows than one chunk."""
    matrix = np.random.RandomState(0).standard_normal((700, 3)).astype(np.float32)
    index = np.random.RandomState(1).permutation(700)[:600]
    rows = gather(matrix, index, Moments(mean=2.0, std=4.0))
    assert rows.ctypes.data % ALIGNMENT == 0
    assert rows.flags.c_contiguous
    assert rows == pytest.approx((matrix[index] - 2) / 4, abs=1e-6)
    assert np.array_equal(gather(matrix, index), matrix[index])


@pytest.mark.parametrize(
    ("rows", "boundary"), [(1, ALIGNMENT), (39, ALIGNMENT), (LARGE_PAGE // 64, LARGE_PAGE)]
)
def test_aligned_memory_starts_a_cache_line_or_a_large_page(rows: int, boundary: int) -> None:
    """The kernel needs large pages for large matrices, of which two share no memory."""
    first, second = aligned((rows, 16)), aligned((rows, 16))
    first[:], second[:] = 1, 2
    assert first.ctypes.data % boundary == second.ctypes.data % boundary == 0
    assert (first == 1).all()
