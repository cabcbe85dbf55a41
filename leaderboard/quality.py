"""Quality scores of whole tables: entries x tasks from fold scores (paper Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import scoring.quality
from leaderboard.snapshot import Entry


def quality_matrix(entries: Sequence[Entry], tasks: Sequence[str], epsilon: float) -> NDArray[np.float64]:
    """Return P x T quality scores, rows as in ``entries``, columns as in ``tasks``."""
    rows = [[scoring.quality.quality(entry.scores[task], epsilon).q for task in tasks] for entry in entries]
    return np.array(rows, np.float64).reshape(len(entries), len(tasks))


def mean_quality(entry: Entry, tasks: Sequence[str], epsilon: float) -> float:
    """Return an entry's unrounded mean Q over the phase's tasks."""
    return scoring.quality.mean_quality(
        [scoring.quality.quality(entry.scores[task], epsilon).q for task in tasks]
    )
