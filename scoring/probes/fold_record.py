"""Record the scores of a fold over a probe's states, which are epochs or tried settings. The best state counts; NaN is never the best."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scoring.probes.measures import score
from scoring.probes.probe import Fold, FoldResult, ProbeInput


class FoldRecord:
    """The history of one fold, and the predictions of the best state so far."""

    def __init__(self, data: ProbeInput, fold: Fold) -> None:
        self._data, self._fold = data, fold
        self._best = -math.inf
        self._predictions = np.full((len(fold.test), data.outputs), np.nan)
        self._history: list[float] = []
        self._losses: list[tuple[float, float]] = []

    def add(self, outputs: NDArray[np.floating], losses: tuple[float, float] | None = None) -> bool:
        """Score a state's outputs on the test part; return whether it is the best so far.

        Args:
            outputs: n_test x C, or n_test.
            losses: Losses of the training and the test part, if they are wanted.
        """
        predictions = self._data.shaped(outputs)
        reached = score(self._data.kind, predictions, self._data.targets[self._fold.test])
        self._history.append(reached)
        if losses is not None:
            self._losses.append(losses)
        if not reached > self._best:
            return False
        self._best, self._predictions = reached, predictions
        return True

    def result(self, train_outputs: NDArray[np.floating] | None) -> FoldResult:
        """Return the fold's result; ``train_outputs`` are the best state's outputs on the training part, if they are wanted."""
        fitted = np.empty((0, self._data.outputs)) if train_outputs is None else train_outputs
        return FoldResult(
            score=self._best if self._best > -math.inf else math.nan,
            test=self._fold.test,
            predictions=self._data.shaped(self._predictions),
            train=self._fold.train[: len(fitted)],
            train_predictions=self._data.shaped(fitted),
            history=tuple(self._history),
            train_losses=tuple(train for train, _ in self._losses),
            test_losses=tuple(test for _, test in self._losses),
        )
