"""Compiled sums over a large float32 matrix, in float64 and in a fixed order: down each column, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled


@compiled
def add_rows(matrix: NDArray[np.float32], center: float, squared: bool, sums: NDArray[np.float64]) -> None:
    """Add every row's differences from ``center``, or their squares, to ``sums``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            difference = np.float64(matrix[i, j]) - center
            sums[j] += difference * difference if squared else difference
