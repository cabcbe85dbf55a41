"""Rows of embeddings for the engines: standardized, gathered per row set, aligned to cache lines."""

from __future__ import annotations

import contextlib
import math
import mmap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes; one cache line, one AVX-512 register
LARGE_PAGE = 2 << 20  # bytes
_CHUNK = 512  # rows that are converted to float64 at a time


@dataclass(frozen=True, kw_only=True)
class Moments:
    """One global mean and one global population standard deviation (paper A.1)."""

    mean: float
    std: float


NEUTRAL = Moments(mean=0.0, std=1.0)


def moments(matrix: NDArray[np.float32]) -> Moments:
    """Return mean and population standard deviation over all values, accumulated in float64 in row order.

    It takes two passes, because a difference of large sums would lose a small deviation. It is compiled, because numpy would convert the
    whole matrix to float64 or take five times as long.
    """
    values = np.ascontiguousarray(matrix)  # copied once for both passes
    mean = math.fsum(column_sums(values)) / values.size
    squares = column_sums(values, mean, squared=True)
    return Moments(mean=mean, std=math.sqrt(math.fsum(squares) / values.size))


def column_sums(
    matrix: NDArray[np.float32], center: float = 0.0, *, squared: bool = False
) -> NDArray[np.float64]:
    """Return each column's sum of differences from ``center``, or of their squares."""
    from scoring.kernel.sums import add_rows

    sums = np.zeros(matrix.shape[1])
    add_rows(np.ascontiguousarray(matrix), center, squared, sums)
    return sums


def reference_moments(matrix: NDArray[np.float32]) -> Moments:
    """Return the moments as NeuCo-Bench uses them: if all values are equal, they are moved to zero and not divided by a zero deviation."""
    scale = moments(matrix)
    return scale if scale.std != 0 else Moments(mean=scale.mean, std=1.0)


def gather(
    matrix: NDArray[np.float32], index: NDArray[np.intp], scale: Moments = NEUTRAL
) -> NDArray[np.float32]:
    """Copy rows into a new aligned matrix and standardize them with ``scale``, computed in float64 and stored as float32."""
    rows = aligned((len(index), matrix.shape[1]))
    for start in range(0, len(index), _CHUNK):
        part = index[start : start + _CHUNK]
        if scale == NEUTRAL:
            rows[start : start + _CHUNK] = matrix[part]
        else:
            rows[start : start + _CHUNK] = (matrix[part].astype(np.float64) - scale.mean) / scale.std
    return rows


def aligned(shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return an uninitialized float32 matrix whose first byte starts a cache line.

    A large matrix is on large memory pages if the system has them: the kernel jumps from row to row, and takes a tenth longer on small
    pages. It gets its own mapping, because the heap would reuse memory that already has small pages.
    """
    size = shape[0] * shape[1] * 4
    if size >= LARGE_PAGE:
        raw, boundary = _mapped(size), LARGE_PAGE
    else:
        raw, boundary = np.empty(size + ALIGNMENT, dtype=np.uint8), ALIGNMENT
    start = -raw.ctypes.data % boundary
    return raw[start : start + size].view(np.float32).reshape(shape)


def _mapped(size: int) -> NDArray[np.uint8]:
    """Map memory that holds ``size`` bytes from the start of a large page on."""
    memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)


def padded(rows: NDArray[np.float32], lanes: int) -> tuple[NDArray[np.float32], int]:
    """Return the rows as a flat, aligned array padded to whole lanes, and their width; rows that already have this form are not copied."""
    samples, dim = rows.shape
    width = -(-dim // lanes) * lanes
    if width == dim and rows.flags.c_contiguous and rows.ctypes.data % ALIGNMENT == 0:
        return rows.reshape(-1), width
    wide = aligned((samples, width))
    wide[:, :dim] = rows
    wide[:, dim:] = 0
    return wide.reshape(-1), width
