"""Draw a task's plots under the file names of NeuCo-Bench, as PNG, without a display or a network.

There are loss curves of all folds, and parity plots, confusion matrices and ROC curves of the first few. NeuCo-Bench draws every fold; that
would take longer than scoring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.neuco_bench.run import TaskReport
from scoring.printable import printable
from scoring.probes.measures import confusion, indicators, roc_curve
from scoring.probes.probe import FoldResult, ProbeInput
from scoring.tasks import TaskType

FOLDS_DRAWN = 5
SCALE = 2.0  # pixels per unit; 144 dots per inch
WIDTH, HEIGHT = 420, 320
LARGEST_LEGEND = 12  # curves

Spec = dict[str, Any]  # of Vega-Lite


def draw_plots(folder: Path, task: TaskReport, *, stem: str) -> None:
    """Draw a task's plots into ``<folder>/<task>/…``.

    Args:
        folder: The run's folder.
        task: The task, trained with details.
        stem: Name of the submission file; the plots' names begin with it.
    """
    import vl_convert

    # A control character would abort the process.
    task = replace(task, data=replace(task.data, classes=tuple(map(printable, task.data.classes))))
    for name, spec in _plots(task, stem):
        path = folder / task.data.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": "white", **spec}
        path.write_bytes(vl_convert.vegalite_to_png(whole, scale=SCALE))


def _plots(task: TaskReport, stem: str) -> Iterator[tuple[str, Spec]]:
    """Yield each plot's path in the task's folder, and its specification."""
    name, folds = task.data.name, task.folds
    for part, curves in (
        ("train", [fold.train_losses for fold in folds]),
        ("validation", [fold.test_losses for fold in folds]),
    ):
        shown = [[value for value in curve if math.isfinite(value)] for curve in curves]
        if any(shown):
            title = f"Loss curves – {name} ({part})"
            yield f"loss_curves/{name}_{part}_loss_curves.png", _losses(title, shown)
    for number, fold in enumerate(folds[:FOLDS_DRAWN], 1):
        if np.isfinite(fold.predictions).all():
            yield from _fold(task.data, fold, f"{stem}_{name}", number)


def _fold(data: ProbeInput, fold: FoldResult, stem: str, number: int) -> Iterator[tuple[str, Spec]]:
    truth, what = data.targets[fold.test], f"{data.name}, fold {number}"
    if data.kind is TaskType.REGRESSION:
        parts = {
            "Train": (data.targets[fold.train], fold.train_predictions),
            "Validation": (truth, fold.predictions),
        }
        yield (
            f"regression_scatter/{stem}_scatter_fold{number}.png",
            _parity(f"Regression scatter: {what}", parts),
        )
        return
    counts = confusion(data.kind, fold.predictions, truth)
    if counts is not None:
        matrix = _matrix(f"Confusion matrix: {what}", counts.tolist(), data.classes or ("0", "1"))
        yield f"confusion_matrices/{stem}_cm_fold{number}.png", matrix
    outputs = fold.predictions.reshape(len(truth), -1)
    present = indicators(data.kind, truth, fold.predictions)
    curves = {
        name: roc_curve(outputs[:, column], present[:, column])
        for column, name in enumerate(data.classes or ("positive",))
        if 0 < present[:, column].sum() < len(present)
    }
    yield f"roc_curves/{stem}_roc_fold{number}.png", _roc(f"ROC: {what}", curves)


def _losses(title: str, curves: Sequence[Sequence[float]]) -> Spec:
    """Return a chart of losses by epoch, each fold's as a thin line."""
    values = [
        {"curve": number, "x": place, "y": value}
        for number, curve in enumerate(curves, 1)
        for place, value in enumerate(curve, 1)
    ]
    return {
        **_frame(title, values),
        "mark": {"type": "line", "opacity": 0.6, "strokeWidth": 1},
        "encoding": {
            "x": _axis("x", "Epoch"),
            "y": _axis("y", "Loss", zero=False),
            "color": {"field": "curve", "type": "nominal", "legend": None},
        },
    }


def _parity(title: str, series: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]) -> Spec:
    """Return a chart of predicted against true values, with the diagonal."""
    values = [
        {"part": part, "x": float(true), "y": float(predicted)}
        for part, pairs in series.items()
        for true, predicted in zip(*pairs, strict=True)
    ]
    truths = [float(end) for true, _ in series.values() for end in (true.min(), true.max())]
    line = [{"x": end, "y": end} for end in (min(truths), max(truths))]
    return {
        **_frame(title, values),
        "layer": [
            {
                "mark": {"type": "circle", "opacity": 0.45, "size": 22},
                "encoding": {
                    "x": _axis("x", "True values", zero=False),
                    "y": _axis("y", "Predicted values", zero=False),
                    "color": {"field": "part", "type": "nominal", "title": None, "sort": list(series)},
                },
            },
            {
                "data": {"values": line},
                "mark": {"type": "line", "color": "green", "strokeDash": [6, 4]},
                "encoding": {
                    "x": {"field": "x", "type": "quantitative"},
                    "y": {"field": "y", "type": "quantitative"},
                },
            },
        ],
    }


def _matrix(title: str, counts: Sequence[Sequence[int]], names: Sequence[str]) -> Spec:
    """Return a chart of a confusion matrix, with true classes as rows."""
    values = [
        {"true": names[row], "predicted": names[column], "count": int(count)}
        for row, line in enumerate(counts)
        for column, count in enumerate(line)
    ]
    half = max(int(count) for line in counts for count in line) / 2
    place = {
        "x": {
            "field": "predicted",
            "type": "nominal",
            "title": "Predicted label",
            "sort": list(names),
            "axis": {"labelAngle": 0},
        },
        "y": {"field": "true", "type": "nominal", "title": "True label", "sort": list(names)},
    }
    return {
        **_frame(title, values),
        "encoding": place,
        "layer": [
            {
                "mark": "rect",
                "encoding": {
                    "color": {
                        "field": "count",
                        "type": "quantitative",
                        "scale": {"scheme": "blues"},
                        "title": None,
                    }
                },
            },
            {
                "mark": "text",
                "encoding": {
                    "text": {"field": "count", "type": "quantitative"},
                    "color": {
                        "condition": {"test": f"datum.count > {half}", "value": "white"},
                        "value": "black",
                    },
                },
            },
        ],
    }


def _roc(title: str, curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Spec:
    """Return a chart of ROC curves, with the diagonal of random guessing."""
    values = [
        {"curve": name, "x": false, "y": true, "order": number}
        for name, rates in curves.items()
        for number, (false, true) in enumerate(np.stack(rates, axis=1).tolist())
    ]
    return {
        **_frame(title, values),
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "linear"},
                "encoding": {
                    "x": _axis("x", "False positive rate"),
                    "y": _axis("y", "True positive rate"),
                    "order": {"field": "order", "type": "quantitative"},
                    "color": {
                        "field": "curve",
                        "type": "nominal",
                        "title": None,
                        "legend": {} if 1 < len(curves) <= LARGEST_LEGEND else None,
                    },
                },
            },
            {
                "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
                "mark": {"type": "line", "color": "grey", "strokeDash": [4, 4]},
                "encoding": {
                    "x": {"field": "x", "type": "quantitative"},
                    "y": {"field": "y", "type": "quantitative"},
                },
            },
        ],
    }


def _frame(title: str, values: Sequence[Mapping[str, object]]) -> Spec:
    return {"title": printable(title), "width": WIDTH, "height": HEIGHT, "data": {"values": values}}


def _axis(field: str, title: str, *, zero: bool = True) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": zero}}
