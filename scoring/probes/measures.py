"""All metrics of the paper for one fold (Appendix B.2), and macro F1, the score of tasks with several classes or labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.metrics import SIGMOID_HALF, best_score, r2
from scoring.probes.probe import Fold, FoldResult, ProbeInput
from scoring.tasks import TaskType


def measures(kind: TaskType, predictions: NDArray[np.float64], targets: NDArray[Any]) -> dict[str, float]:
    """Return every metric of a task's kind for one test part.

    For several classes or labels, F1, precision and recall are macro means, and ROC-AUC is the mean over the classes, each against the
    rest. ROC-AUC of a single class is NaN; in the other metrics 0/0 is 0, as in NeuCo-Bench.

    Args:
        kind: What is predicted.
        predictions: Outputs, n or n x C.
        targets: As in :class:`scoring.probes.probe.ProbeInput`.
    """
    if kind is TaskType.REGRESSION:
        with np.errstate(over="ignore", invalid="ignore"):  # outputs of a failed fold
            errors = targets.astype(np.float64) - predictions
            mse, mae = float(np.mean(errors**2)), float(np.mean(np.abs(errors)))
        return {"r2": r2(predictions, targets), "mse": mse, "mae": mae}
    decided, truth = decisions(kind, predictions), indicators(kind, targets, predictions)
    f1, precision, recall = _rates(kind, decided, truth)
    right = (decided == truth).all(axis=1) if kind is TaskType.MULTICLASS else (decided == truth)
    outputs = predictions.reshape(len(predictions), -1)
    areas = np.array([roc_auc(outputs[:, column], truth[:, column]) for column in range(outputs.shape[1])])
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "accuracy": float(right.mean()),
        "roc_auc": float(np.nanmean(areas)) if np.isfinite(areas).any() else float("nan"),
    }


def score(kind: TaskType, predictions: NDArray[np.float64], targets: NDArray[Any]) -> float:
    """Return the score: R2, F1 or macro F1; NaN if a prediction is not finite.

    Macro F1 follows torchmetrics' edge rules: a class that neither occurs nor is predicted does not count, but a label always counts.
    """
    if not np.isfinite(predictions).all():
        return float("nan")
    if kind is TaskType.REGRESSION:
        return r2(predictions, targets)
    return _rates(kind, decisions(kind, predictions), indicators(kind, targets, predictions))[0]


def decisions(kind: TaskType, predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which classes are predicted, n x C (C is 1 for a binary task).

    Of several classes, this is the one with the greatest output. In other tasks it is each one with a probability above one half; outputs
    that are all in [0, 1] count as probabilities (torchmetrics' rule).
    """
    outputs = predictions.reshape(len(predictions), -1)
    if kind is TaskType.MULTICLASS:
        return np.asarray(outputs.argmax(axis=1)[:, np.newaxis] == np.arange(outputs.shape[1]))
    are_probabilities = bool(np.all((outputs >= 0) & (outputs <= 1)))
    return np.asarray(outputs > (0.5 if are_probabilities else SIGMOID_HALF))


def indicators(kind: TaskType, targets: NDArray[Any], predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which classes are true, n x C."""
    if kind is TaskType.MULTICLASS:
        return np.asarray(targets[:, np.newaxis] == np.arange(predictions.shape[1]))
    return np.asarray(targets.reshape(len(targets), -1) > 0.5)


def confusion(
    kind: TaskType, predictions: NDArray[np.float64], targets: NDArray[Any]
) -> NDArray[np.int64] | None:
    """Return the confusion matrix, with true classes as rows and predicted ones as columns; None for regressions and several labels."""
    if kind in {TaskType.REGRESSION, TaskType.MULTILABEL}:
        return None
    decided, true = decisions(kind, predictions), indicators(kind, targets, predictions)
    if kind is TaskType.CLASSIFICATION:
        decided, true = np.hstack([~decided, decided]), np.hstack([~true, true])
    return np.asarray(true.T.astype(np.int64) @ decided.astype(np.int64))


def roc_auc(outputs: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve; NaN if all samples are of one class, or an output is not finite."""
    if truth.all() or not truth.any() or not np.isfinite(outputs).all():
        return float("nan")
    false_rates, true_rates = roc_curve(outputs, truth)
    return float(np.trapezoid(true_rates, false_rates))


def roc_curve(
    outputs: NDArray[np.float64], truth: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates, from (0, 0) to (1, 1), one point per distinct output."""
    order = np.argsort(-outputs, kind="stable")
    last = np.append(np.flatnonzero(np.diff(outputs[order])), len(outputs) - 1)
    true_positives = np.cumsum(truth[order])[last]
    rates = [
        np.concatenate(([0.0], count / max(int(count[-1]), 1)))
        for count in ((last + 1 - true_positives).astype(np.float64), true_positives.astype(np.float64))
    ]
    return rates[0], rates[1]


def _rates(
    kind: TaskType, decided: NDArray[np.bool_], truth: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return macro F1, precision and recall from decisions and truth, n x C; 0/0 is 0."""
    if kind is TaskType.MULTICLASS:
        present = (decided | truth).any(axis=0)
        decided, truth = decided[:, present], truth[:, present]
    hits = np.sum(decided & truth, axis=0)
    sizes = decided.sum(axis=0), truth.sum(axis=0)
    rates = [
        np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
        for part, whole in ((2 * hits, sizes[0] + sizes[1]), (hits, sizes[0]), (hits, sizes[1]))
    ]
    f1, precision, recall = (math.fsum(rate) / len(rate) for rate in rates)
    return f1, precision, recall


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeState:
    """One state of a probe.

    Attributes:
        outputs: Outputs on the test part, n_test x C or n_test.
        fitted: The same on the training part; empty if details were not asked for.
        losses: Losses of the training and the test part; none if there are no epochs, or details were not asked for.
    """

    outputs: NDArray[np.floating]
    fitted: NDArray[np.floating]
    losses: tuple[float, ...] = ()


def best_of(data: ProbeInput, fold: Fold, states: Iterable[ProbeState]) -> FoldResult:
    """Return the result of a fold: the first of the states with the best score; NaN is never the best."""
    tried = list(states)
    truth = data.targets[fold.test]
    history = [score(data.kind, data.shaped(state.outputs), truth) for state in tried]
    best = tried[int(np.nan_to_num(history, nan=-np.inf).argmax())]
    losses = [state.losses for state in tried if state.losses]
    return FoldResult(
        score=best_score(np.array(history)),
        test=fold.test,
        predictions=data.shaped(best.outputs),
        train=fold.train[: len(best.fitted)],
        train_predictions=data.shaped(best.fitted),
        history=tuple(history),
        train_losses=tuple(train for train, _ in losses),
        test_losses=tuple(test for _, test in losses),
    )
