"""The held-out metrics, with the edge rules of torchmetrics (R2Score, BinaryF1Score).

The functions of sums and counts are plain arithmetic on floats, so the compiled kernel calls them too; the engine ``torch`` uses the
functions of arrays.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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
