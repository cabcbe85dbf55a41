"""NeuroBench's complexity metrics for this benchmark: what an embedding and its probe cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scoring.probes.probe import Probe, ProbeInput

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

    def to_json(self) -> dict[str, float | None]:
        """Return a JSON-ready document."""
        return dict(vars(self))


def sparsity(matrix: NDArray[np.float32]) -> float:
    """Return the share of values that are exactly zero."""
    return 1.0 - float(np.count_nonzero(matrix)) / matrix.size if matrix.size else 0.0


def complexity(
    matrix: NDArray[np.float32], probe: Probe, data: ProbeInput, seconds: float, folds: int
) -> Complexity:
    """Compute the complexity of one task of a standalone run.

    Args:
        matrix: Embeddings before standardization.
        probe: The trained probe.
        data: The task.
        seconds: Wall time of all folds.
        folds: Number of folds.
    """
    return probe_complexity(
        matrix,
        parameters=probe.parameters(matrix.shape[1], data.outputs),
        multiply_accumulates=probe.multiply_accumulates(matrix.shape[1], data.outputs),
        linear=probe.hidden == (),
        seconds_per_fold=seconds / folds,
    )


def probe_complexity(
    matrix: NDArray[np.float32],
    *,
    parameters: int | None,
    multiply_accumulates: int | None,
    linear: bool,
    seconds_per_fold: float,
) -> Complexity:
    """Assemble the metrics; a challenge's scorecard uses it too, for a linear probe with N + 1 parameters and N operations."""
    dim, empty = matrix.shape[1], sparsity(matrix)
    effective = None
    if linear and multiply_accumulates is not None:
        effective = round(multiply_accumulates * (1.0 - empty))
    return Complexity(
        probe_parameters=parameters,
        embedding_dim=dim,
        embedding_bytes=dim * FLOAT32_BYTES,
        activation_sparsity=empty,
        multiply_accumulates=multiply_accumulates,
        effective_multiply_accumulates=effective,
        latency_ms=seconds_per_fold * 1000.0,
    )
