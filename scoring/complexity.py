"""NeuroBench's complexity metrics for this benchmark: what an embedding and its probe cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FLOAT32_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Complexity:
    """Complexity of one task's probe on one set of embeddings.

    Attributes:
        probe_parameters: Number of trained parameters; None if it depends on the data (support vectors).
        embedding_dim: Dimension N.
        embedding_bytes: Size of one embedding as float32.
        activation_sparsity: Share of the embeddings' values that are exactly zero, padding included.
        multiply_accumulates: Multiply-accumulate operations of one prediction, dense.
        effective_multiply_accumulates: Operations whose factor is not zero, estimated as the dense number times (1 - sparsity); None for a
            probe that is not linear. Sparsity is measured before standardization, which usually leaves no zeros.
        latency_ms: Wall time per fold of training and scoring, in milliseconds; folds trained at the same time share it.
    """

    probe_parameters: int | None
    embedding_dim: int
    embedding_bytes: int
    activation_sparsity: float
    multiply_accumulates: int | None
    effective_multiply_accumulates: int | None
    latency_ms: float


def sparsity(matrix: NDArray[np.float32]) -> float:
    """Return the share of values that are exactly zero."""
    return 1.0 - float(np.count_nonzero(matrix)) / matrix.size if matrix.size else 0.0


def complexity(
    matrix: NDArray[np.float32], layers: Sequence[int] | None, seconds_per_fold: float
) -> Complexity:
    """Compute the complexity of one task.

    Args:
        matrix: Embeddings before standardization, n x N.
        layers: Sizes from the embedding to the outputs, such as (N, 1) for a linear probe; None if the probe has no layers.
        seconds_per_fold: Wall time.
    """
    dim, empty = matrix.shape[1], sparsity(matrix)
    parameters = operations = effective = None
    if layers is not None:
        operations = sum(inputs * outputs for inputs, outputs in pairwise(layers))
        parameters = operations + sum(layers[1:])
        effective = round(operations * (1.0 - empty)) if len(layers) == 2 else None
    return Complexity(
        probe_parameters=parameters,
        embedding_dim=dim,
        embedding_bytes=dim * FLOAT32_BYTES,
        activation_sparsity=empty,
        multiply_accumulates=operations,
        effective_multiply_accumulates=effective,
        latency_ms=seconds_per_fold * 1000.0,
    )
