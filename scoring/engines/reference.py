"""The engine ``reference``: every fold of every task by the loop of :mod:`scoring.reference`, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore
from scoring.reference import fold_score


class ReferenceEngine(Engine):
    """Score units with the loop that defines a score; to check the others, because it takes 100 to 700 times as long."""

    name = "reference"
    libraries = ("torch",)

    def score(self, unit: Unit, *, progress: Callable[[int], None] = ignore) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # products are too small for several threads
        scores = np.empty((len(unit.targets), len(unit.split_seeds)))
        try:
            for task, fold in np.ndindex(scores.shape):
                scores[task, fold] = fold_score(unit, task, fold)
                progress(1)
        finally:
            torch.set_num_threads(threads)
        return scores
