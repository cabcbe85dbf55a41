"""Random train/test splits: scikit-learn's ShuffleSplit, without scikit-learn.

A split is a permutation of the rows: the first ``held_out(n, test_size)`` are the test part, the others the training part.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def held_out(rows: int, test_size: float) -> int:
    """Return the number of test rows, rounded up as ShuffleSplit does."""
    return math.ceil(test_size * rows)


class Splitter:
    """Makes splits from seeds; keeps one generator, because making one costs more than seeding it."""

    def __init__(self) -> None:
        self._generator = np.random.RandomState()

    def permutation(self, seed: int, rows: int) -> NDArray[np.int32]:
        """Permute the rows as ``ShuffleSplit(random_state=seed)`` does for its first split."""
        self._generator.seed(seed)
        return self._generator.permutation(rows).astype(np.int32)
