"""All metrics of the paper for one fold (Appendix B.2), and macro F1, the score of tasks with several classes or labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.metrics import SIGMOID_HALF, r2_from_sums
from scoring.probes.probe import TaskKind


def measures(kind: TaskKind, predictions: NDArray[np.float64], targets: NDArray[Any]) -> dict[str, float]:
    """Return every metric of a task's kind for one test part.

    For several classes or labels, F1, precision and recall are macro means, and ROC-AUC is the mean over the classes, each against the
    rest. ROC-AUC of a single class is NaN; in the other metrics 0/0 is 0, as in NeuCo-Bench.

    Args:
        kind: What is predicted.
        predictions: Outputs, n or n x C.
        targets: As in :class:`scoring.probes.probe.ProbeInput`.
    """
    if kind is TaskKind.REGRESSION:
        with np.errstate(over="ignore", invalid="ignore"):  # outputs of a failed fold
            errors = targets.astype(np.float64) - predictions
            return {
                "r2": _r2(errors, targets),
                "mse": float(np.mean(errors**2)),
                "mae": float(np.mean(np.abs(errors))),
            }
    decided, truth = decisions(kind, predictions), indicators(kind, targets, predictions)
    f1, precision, recall = _rates(kind, decided, truth)
    right = (decided == truth).all(axis=1) if kind is TaskKind.MULTICLASS else (decided == truth)
    outputs = predictions.reshape(len(predictions), -1)
    areas = np.array([roc_auc(outputs[:, column], truth[:, column]) for column in range(outputs.shape[1])])
    defined = areas[np.isfinite(areas)]
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "accuracy": float(right.mean()),
        "roc_auc": float(defined.mean()) if len(defined) else float("nan"),
    }


def score(kind: TaskKind, predictions: NDArray[np.float64], targets: NDArray[Any]) -> float:
    """Return the score: R2, F1 or macro F1; NaN if a prediction is not finite.

    Macro F1 follows torchmetrics' edge rules: a class that neither occurs nor is predicted does not count, but a label always counts.
    """
    if not np.isfinite(predictions).all():
        return float("nan")
    if kind is TaskKind.REGRESSION:
        with np.errstate(over="ignore"):
            return _r2(targets.astype(np.float64) - predictions, targets)
    return _rates(kind, decisions(kind, predictions), indicators(kind, targets, predictions))[0]


def decisions(kind: TaskKind, predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which classes are predicted, n x C (C is 1 for a binary task).

    Of several classes, this is the one with the greatest output. In other tasks it is each one with a probability above one half; outputs
    that are all in [0, 1] count as probabilities (torchmetrics' rule).
    """
    outputs = predictions.reshape(len(predictions), -1)
    if kind is TaskKind.MULTICLASS:
        return np.asarray(outputs.argmax(axis=1)[:, np.newaxis] == np.arange(outputs.shape[1]))
    are_probabilities = bool(np.all((outputs >= 0) & (outputs <= 1)))
    return np.asarray(outputs > (0.5 if are_probabilities else SIGMOID_HALF))


def indicators(kind: TaskKind, targets: NDArray[Any], predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which classes are true, n x C."""
    if kind is TaskKind.MULTICLASS:
        return np.asarray(targets[:, np.newaxis] == np.arange(predictions.shape[1]))
    return np.asarray(targets.reshape(len(targets), -1) > 0.5)


def confusion(
    kind: TaskKind, predictions: NDArray[np.float64], targets: NDArray[Any]
) -> NDArray[np.int64] | None:
    """Return the confusion matrix, with true classes as rows and predicted ones as columns; None for regressions and several labels."""
    if kind in {TaskKind.REGRESSION, TaskKind.MULTILABEL}:
        return None
    decided = decisions(kind, predictions)
    if kind is TaskKind.BINARY:
        size, truth, found = 2, (targets > 0.5).astype(np.int64), decided[:, 0].astype(np.int64)
    else:
        size, truth, found = decided.shape[1], np.asarray(targets, dtype=np.int64), decided.argmax(axis=1)
    return np.bincount(truth * size + found, minlength=size * size).reshape(size, size).astype(np.int64)


def roc_auc(outputs: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how often a positive has a greater output than a negative, ties counting half."""
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives or not np.isfinite(outputs).all():
        return float("nan")
    _, inverse, counts = np.unique(outputs, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def roc_curve(
    outputs: NDArray[np.float64], truth: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates, from (0, 0) to (1, 1), one point per distinct output."""
    order = np.argsort(-outputs, kind="stable")
    last = np.append(np.flatnonzero(np.diff(outputs[order])), len(outputs) - 1)
    found = np.cumsum(truth[order])[last]
    rates = [
        np.concatenate(([0.0], count / max(int(count[-1]), 1)))
        for count in ((last + 1 - found).astype(np.float64), found.astype(np.float64))
    ]
    return rates[0], rates[1]


def _r2(errors: NDArray[np.float64], targets: NDArray[Any]) -> float:
    observed = targets.astype(np.float64)
    return r2_from_sums(float(np.sum(errors**2)), float(np.sum((observed - observed.mean()) ** 2)))


def _rates(
    kind: TaskKind, decided: NDArray[np.bool_], truth: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return macro F1, precision and recall from decisions and truth, n x C; 0/0 is 0."""
    if kind is TaskKind.MULTICLASS:
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
