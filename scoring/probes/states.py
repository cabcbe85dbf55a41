"""The states of a probe on one fold, which are epochs or tried settings. The best on the test part counts, as in NeuCo-Bench."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.metrics import best_score
from scoring.probes.measures import score
from scoring.probes.probe import Fold, FoldResult, ProbeInput


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """One state of a probe.

    Attributes:
        outputs: Outputs on the test part, n_test x C or n_test.
        fitted: The same on the training part; empty if details were not asked for.
        losses: Losses of the training and the test part; empty if details were not asked for.
    """

    outputs: NDArray[np.floating]
    fitted: NDArray[np.floating]
    losses: tuple[float, ...] = ()


def best_of(data: ProbeInput, fold: Fold, states: Iterable[State]) -> FoldResult:
    """Return the result of a fold: the first of the states with the best score; NaN is never the best."""
    history: list[float] = []
    losses: list[tuple[float, ...]] = []
    best = State(outputs=np.full((len(fold.test), data.outputs), np.nan), fitted=np.empty((0, data.outputs)))
    for state in states:
        before = best_score(np.array(history))
        history.append(score(data.kind, data.shaped(state.outputs), data.targets[fold.test]))
        losses.append(state.losses)
        if history[-1] > (-np.inf if np.isnan(before) else before):
            best = state
    return FoldResult(
        score=best_score(np.array(history)),
        test=fold.test,
        predictions=data.shaped(best.outputs),
        train=fold.train[: len(best.fitted)],
        train_predictions=data.shaped(best.fitted),
        history=tuple(history),
        train_losses=tuple(pair[0] for pair in losses if pair),
        test_losses=tuple(pair[1] for pair in losses if pair),
    )
