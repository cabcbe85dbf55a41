"""The quality score Q (paper Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import Recipe

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
    """Return the unweighted mean of the tasks' Q, the same for any order of tasks."""
    return math.fsum(scores) / len(scores)


def shown(q_mean: float, decimals: int, step: float | None = None) -> float:
    """Return the mean Q that participants are shown: rounded to ``decimals``, and to a multiple of ``step`` if there is one.

    Raises:
        ValueError: If it is not finite; a participant is never shown such a value.
    """
    if not math.isfinite(q_mean):
        raise ValueError("mean Q is not finite")
    # Adding 0.0 turns -0.0 into 0.0.
    return round(q_mean if step is None else round(q_mean / step) * step, decimals) + 0.0
