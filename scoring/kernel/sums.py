"""Compiled sums over a large float32 matrix, in float64 and in a fixed order: down each column, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled


@compiled
def add_rows(matrix: NDArray[np.float32], sums: NDArray[np.float64]) -> None:
    """Add every row to ``sums``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            sums[j] += np.float64(matrix[i, j])


@compiled
def add_squares(matrix: NDArray[np.float32], center: float, sums: NDArray[np.float64]) -> None:
    """Add every row's squared differences from ``center`` to ``sums``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            difference = np.float64(matrix[i, j]) - center
            sums[j] += difference * difference
