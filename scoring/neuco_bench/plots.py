"""Draw a task's plots under the file names of NeuCo-Bench.

There are loss curves of all folds, and parity plots, confusion matrices and ROC curves of the first folds and of all folds together.
NeuCo-Bench draws every fold; that would take longer than scoring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.neuco_bench.charts import Spec, draw, lines, matrix, parity, roc, thinned
from scoring.neuco_bench.run import TaskReport
from scoring.probes.measures import confusion, indicators, roc_curve
from scoring.probes.probe import FoldResult, ProbeInput, TaskKind

FOLDS_DRAWN = 5


def draw_plots(folder: Path, task: TaskReport, *, stem: str) -> None:
    """Draw a task's plots into ``<folder>/<task>/…``.

    Args:
        folder: The run's folder.
        task: The task, trained with details.
        stem: Name of the submission file; the plots' names begin with it.
    """
    for path, spec in specifications(task, stem):
        draw(spec, folder / task.data.name / path)


def specifications(task: TaskReport, stem: str) -> Iterator[tuple[Path, Spec]]:
    """Yield each plot's path in the task's folder, and its specification."""
    name, training = task.data.name, task.training
    for part, curves in (
        ("train", [fold.train_losses for fold in training.folds]),
        ("validation", [fold.test_losses for fold in training.folds]),
    ):
        shown = [[value for value in curve if math.isfinite(value)] for curve in curves]
        if any(shown):
            title = f"Loss curves – {name} ({part})"
            yield (
                Path("loss_curves") / f"{name}_{part}_loss_curves.png",
                lines(title, shown, x=training.axis, y="Loss"),
            )
    usable = [
        (number, fold) for number, fold in enumerate(training.folds, 1) if np.isfinite(fold.predictions).all()
    ]
    for number, fold in usable[:FOLDS_DRAWN]:
        yield from _fold(task.data, fold, f"{stem}_{name}", f"_fold{number}", f"{name}, fold {number}")
    if usable:
        together = _together([fold for _, fold in usable])
        yield from _fold(task.data, together, f"{stem}_{name}", "", f"{name}, all folds")


def _fold(
    data: ProbeInput, fold: FoldResult, stem: str, suffix: str, what: str
) -> Iterator[tuple[Path, Spec]]:
    truth = data.targets[fold.test]
    if data.kind is TaskKind.REGRESSION:
        parts = {"Validation": (truth.tolist(), fold.predictions.tolist())}
        if len(fold.train):
            parts = {
                "Train": (data.targets[fold.train].tolist(), fold.train_predictions.tolist()),
                **parts,
            }
        path = Path("regression_scatter") / f"{stem}_scatter{suffix}.png"
        yield path, parity(f"Regression scatter: {what}", parts)
        return
    counts = confusion(data.kind, fold.predictions, truth)
    if counts is not None:
        names = data.classes or ("0", "1")
        path = Path("confusion_matrices") / f"{stem}_cm{suffix}.png"
        yield path, matrix(f"Confusion matrix: {what}", counts.tolist(), names)
    yield (
        Path("roc_curves") / f"{stem}_roc{suffix}.png",
        roc(f"ROC: {what}", _curves(data, fold.predictions, truth)),
    )


def _curves(
    data: ProbeInput, predictions: NDArray[np.float64], truth: NDArray[Any]
) -> dict[str, tuple[list[float], list[float]]]:
    outputs = predictions.reshape(len(predictions), -1)
    present = indicators(data.kind, truth, predictions)
    names = data.classes or ("positive",)
    curves = {}
    for column, name in enumerate(names):
        if 0 < present[:, column].sum() < len(present):
            rates = list(
                zip(
                    *(rate.tolist() for rate in roc_curve(outputs[:, column], present[:, column])),
                    strict=True,
                )
            )
            kept = [*thinned(rates), rates[-1]]
            curves[name] = ([false for false, _ in kept], [true for _, true in kept])
    return curves or {"positive": ([0.0, 1.0], [0.0, 1.0])}


def _together(folds: list[FoldResult]) -> FoldResult:
    """Join the test parts of all folds; a sample occurs once for each test part that has it."""
    return FoldResult(
        score=math.nan,
        test=np.concatenate([fold.test for fold in folds]),
        predictions=np.concatenate([fold.predictions for fold in folds]),
        train=folds[0].train[:0],
        train_predictions=folds[0].train_predictions[:0],
    )
