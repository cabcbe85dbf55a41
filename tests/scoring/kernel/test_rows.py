"""Standardization and gathering of rows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
    found = moments(matrix)
    wide = matrix.astype(np.float64)
    assert found.mean == pytest.approx(wide.mean(), rel=1e-12, abs=1e-12 * scale)
    assert found.std == pytest.approx(wide.std(), rel=1e-9)


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


def test_aligned_memory_starts_a_cache_line() -> None:
    """This holds for any size."""
    for size in range(1, 40):
        assert aligned((size, 3)).ctypes.data % ALIGNMENT == 0


# Whether Python 3.12 warns depends on the threads that other tests have left.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_large_matrix_starts_a_large_page_and_is_its_own() -> None:
    """The kernel needs large pages; two matrices, or a matrix and a child process, share no memory."""
    one, other = (aligned((LARGE_PAGE // 4096 + 1, 1024)) for _ in range(2))
    for matrix in (one, other):
        assert matrix.ctypes.data % LARGE_PAGE == 0
        assert matrix.flags.writeable
    one[:] = 1
    other[:] = 2
    child = os.fork()
    if not child:
        one[:] = 3
        os._exit(0)
    os.waitpid(child, 0)
    assert (one == 1).all()
    assert (other == 2).all()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_a_large_matrix_is_freed_at_once() -> None:
    """Rows of one task do not stay in memory while the next one's are made."""

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    for _ in range(10):
        matrix = aligned((4000, 1024))
        matrix[:] = 1
        del matrix
    assert resident() - before < 20 * 2**20
