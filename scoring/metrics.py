"""The figures of a score: held-out metrics, the quality score Q (paper Eq. 1), and NeuroBench's complexity metrics.

The held-out metrics have the edge rules of torchmetrics (R2Score, BinaryF1Score).

The functions of sums and counts are plain arithmetic on floats, so the compiled kernel calls them too; the engine ``torch`` uses the
functions of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import Recipe

R2_TOLERANCE = 1e-4  # sums of squares up to this count as zero
SIGMOID_HALF = 1.5 * 2.0**-24  # the greatest logit whose float32 sigmoid still rounds to 0.5


def r2_from_sums(residual: float, total: float) -> float:
    """Return R2 from the residual and the total sum of squares.

    A residual of zero gives 1, even if the labels do not vary. Any other residual gives 0 if the labels do not vary; if they do, NaN
    predictions give NaN and infinite ones minus infinity.
    """
    if abs(residual) <= R2_TOLERANCE:
        return 1.0
    if abs(total) <= R2_TOLERANCE:
        return 0.0
    return 1.0 - residual / total


def f1_from_counts(true_positives: int, false_positives: int, false_negatives: int) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN), and 0 for 0/0."""
    denominator = 2 * true_positives + false_positives + false_negatives
    if denominator == 0:
        return 0.0
    return 2 * true_positives / denominator


def r2(predictions: NDArray[np.floating], targets: NDArray[np.floating]) -> float:
    """Return the R2 of a whole test part; sums are in float64."""
    observed = targets.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        residual = float(np.sum((observed - predictions.astype(np.float64)) ** 2))
    total = float(np.sum((observed - observed.mean()) ** 2))
    return r2_from_sums(residual, total)


def f1(logits: NDArray[np.float32], targets: NDArray[np.float32]) -> float:
    """Return the F1 of a binary classification over a whole test part.

    The sigmoid is applied only if some value lies outside [0, 1]; otherwise the values count as probabilities. In both cases, a probability
    above one half is a positive.
    """
    are_probabilities = bool(np.all((logits >= 0) & (logits <= 1)))
    positive = logits > (0.5 if are_probabilities else SIGMOID_HALF)
    truth = targets > 0.5
    return f1_from_counts(
        int(np.sum(positive & truth)), int(np.sum(positive & ~truth)), int(np.sum(~positive & truth))
    )


def best_score(history: NDArray[np.float64]) -> float:
    """Return the best of the epochs' scores: the greatest that is neither NaN nor minus infinity, and NaN if there is none."""
    usable = history[history > -np.inf]
    return float(usable.max()) if len(usable) else math.nan


Moment = TypeVar("Moment", float, NDArray[np.float64])


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The summary of one task's fold scores.

    Attributes:
        mean: Mean over the finite folds.
        std: Population standard deviation over the finite folds.
        q: 100 * epsilon * mean / (std + epsilon).
        failed_folds: Number of folds that are not finite.
    """

    mean: float
    std: float
    q: float
    failed_folds: int


def quality(folds: Sequence[float], epsilon: float = Recipe.epsilon) -> Quality:
    """Summarize fold scores: Q rewards a high mean and penalizes variation over the splits (paper Eq. 1, A.1).

    Sums are rounded exactly, so the order of the folds does not matter. Without a finite fold, mean, std and Q are NaN.
    """
    finite = [score for score in folds if math.isfinite(score)]
    failed = len(folds) - len(finite)
    if not finite:
        return Quality(mean=math.nan, std=math.nan, q=math.nan, failed_folds=failed)
    mean = math.fsum(finite) / len(finite)
    std = math.sqrt(math.fsum((score - mean) ** 2 for score in finite) / len(finite))
    return Quality(mean=mean, std=std, q=quality_of_moments(mean, std, epsilon), failed_folds=failed)


def quality_of_moments(mean: Moment, std: Moment, epsilon: float) -> Moment:
    """Compute Q from mean and population standard deviation (paper Eq. 1); the bootstrap passes arrays."""
    return 100.0 * epsilon * mean / (std + epsilon)


def mean_quality(scores: Sequence[float]) -> float:
    """Return the unweighted mean of the tasks' Q, the same for any order of tasks; NaN without tasks, or if one has no Q."""
    return math.fsum(scores) / len(scores) if scores else math.nan


def shown(q_mean: float, decimals: int, step: float | None = None) -> float:
    """Return the mean Q that participants are shown: rounded to ``decimals``, and to a multiple of ``step`` if there is one.

    Raises:
        ValueError: If it is not finite; a participant is never shown such a value.
    """
    if not math.isfinite(q_mean):
        raise ValueError("mean Q is not finite")
    # Adding 0.0 turns -0.0 into 0.0.
    return round(q_mean if step is None else round(q_mean / step) * step, decimals) + 0.0


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


def complexity(
    matrix: NDArray[np.float32], layers: Sequence[int] | None, seconds_per_fold: float
) -> Complexity:
    """Compute the complexity of one task.

    Args:
        matrix: Embeddings before standardization, n x N.
        layers: Sizes from the embedding to the outputs, such as (N, 1) for a linear probe; None if the probe has no layers.
        seconds_per_fold: Wall time.
    """
    dim, empty = matrix.shape[1], 1.0 - float(np.count_nonzero(matrix)) / matrix.size
    parameters = operations = effective = None
    if layers is not None:
        operations = sum(inputs * outputs for inputs, outputs in pairwise(layers))
        parameters = operations + sum(layers[1:])
        effective = round(operations * (1.0 - empty)) if len(layers) == 2 else None
    return Complexity(
        probe_parameters=parameters,
        embedding_dim=dim,
        embedding_bytes=dim * 4,
        activation_sparsity=empty,
        multiply_accumulates=operations,
        effective_multiply_accumulates=effective,
        latency_ms=seconds_per_fold * 1000.0,
    )
