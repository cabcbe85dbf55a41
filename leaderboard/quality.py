"""Quality scores of whole tables: entries x tasks from fold scores (paper Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.snapshot import Entry


def quality_from_moments(
    mean: NDArray[np.float64], std: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Turn mean and population standard deviation over folds into quality scores, in percent."""
    return 100.0 * epsilon * mean / (std + epsilon)


def quality_score(folds: Sequence[float], epsilon: float) -> float:
    """Return a task's quality score over its finite folds."""
    scores = np.array(folds, np.float64)
    finite = scores[np.isfinite(scores)]
    return float(quality_from_moments(finite.mean(), finite.std(), epsilon))


def quality_matrix(entries: Sequence[Entry], tasks: Sequence[str], epsilon: float) -> NDArray[np.float64]:
    """Return P x T quality scores, rows as in ``entries``, columns as in ``tasks``."""
    rows = [[quality_score(entry.scores[task], epsilon) for task in tasks] for entry in entries]
    return np.array(rows, np.float64).reshape(len(entries), len(tasks))


def mean_quality(entry: Entry, tasks: Sequence[str], epsilon: float) -> float:
    """Return an entry's unrounded mean Q: the plain mean over the phase's tasks, exactly summed."""
    return math.fsum(quality_score(entry.scores[task], epsilon) for task in tasks) / len(tasks)
