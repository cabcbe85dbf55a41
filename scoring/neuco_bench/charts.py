"""Charts as Vega-Lite specifications, drawn to PNG without a display or a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

SCALE = 2.0  # pixels per unit; 144 dots per inch
WIDTH, HEIGHT = 420, 320
POINTS = 1500  # most points of a series; more would only overlap
T = TypeVar("T")

Spec = dict[str, Any]


class SeriesPoint(TypedDict):
    """The score of one series at one size of the embedding."""

    series: str
    size: int
    score: float


class Difference(TypedDict):
    """The difference in Q between two runs on one task, with the ends of its interval."""

    run: str
    task: str
    value: float
    low: float | None
    high: float | None


def draw(spec: Spec, path: Path) -> None:
    """Write a chart as PNG; as SVG, or as the specification itself, if the name ends with .svg or .json."""
    import vl_convert

    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": "white", **spec}
    if path.suffix == ".json":
        path.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    elif path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(whole), "utf-8")
    else:
        path.write_bytes(vl_convert.vegalite_to_png(whole, scale=SCALE))


def lines(title: str, curves: Sequence[Sequence[float]], *, x: str, y: str) -> Spec:
    """Return a chart of curves over 1, 2, 3 and so on, each as a thin line."""
    values = [
        {"curve": number, "x": place, "y": value}
        for number, curve in enumerate(curves, 1)
        for place, value in enumerate(curve, 1)
    ]
    return {
        **_frame(title, values),
        "mark": {"type": "line", "opacity": 0.6, "strokeWidth": 1},
        "encoding": {
            "x": _axis("x", x),
            "y": _axis("y", y, zero=False),
            "color": {"field": "curve", "type": "nominal", "legend": None},
        },
    }


def parity(title: str, series: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Spec:
    """Return a chart of predicted against true values, with the diagonal."""
    shown = {part: thinned(list(zip(*values, strict=True))) for part, values in series.items()}
    values = [
        {"part": part, "x": true, "y": predicted}
        for part, pairs in shown.items()
        for true, predicted in pairs
    ]
    truths = [true for pairs in shown.values() for true, _ in pairs]
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


def matrix(title: str, counts: Sequence[Sequence[int]], names: Sequence[str]) -> Spec:
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


def roc(title: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Spec:
    """Return a chart of ROC curves, with the diagonal of random guessing."""
    values = [
        {"curve": name, "x": false, "y": true, "order": number}
        for name, (false_rates, true_rates) in curves.items()
        for number, (false, true) in enumerate(zip(false_rates, true_rates, strict=True))
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
                        "legend": {} if 1 < len(curves) <= 12 else None,
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


def sizes(title: str, points: Sequence[SeriesPoint], *, y: str) -> Spec:
    """Return a chart of scores against the size of the embedding on a logarithmic axis, one line per series (paper Fig. 5a, 14)."""
    ticks = sorted({point["size"] for point in points})
    return {
        **_frame(title, list(points)),
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "title": "Embedding size N",
                "scale": {"type": "log", "base": 2, "domain": [ticks[0], ticks[-1]], "nice": False},
                "axis": {"values": ticks, "format": "d"},
            },
            "y": _axis("score", y, zero=False),
            "color": {
                "field": "series",
                "type": "nominal",
                "title": None,
                "sort": list(dict.fromkeys(point["series"] for point in points)),
            },
            "strokeWidth": {"condition": {"test": "datum.series == 'mean of tasks'", "value": 3}, "value": 1},
        },
    }


def differences(title: str, rows: Sequence[Difference], *, x: str) -> Spec:
    """Return a chart with a point and an interval for each task and run, in their order, and a line at zero."""
    tasks, runs = (list(dict.fromkeys(row[key] for row in rows)) for key in ("task", "run"))
    task = {"field": "task", "type": "nominal", "title": None, "sort": tasks}
    run = {"field": "run", "type": "nominal", "title": None, "sort": runs}
    place = {"y": task, "yOffset": run, "color": {**run, "legend": {} if len(runs) > 1 else None}}
    return {
        **_frame(title, rows),
        "height": {"step": 14 * len(runs) + 10},
        "layer": [
            {
                "mark": "rule",
                "encoding": {**place, "x": _axis("low", x), "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {**place, "x": {"field": "value", "type": "quantitative"}},
            },
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "color": "grey", "strokeDash": [4, 4]},
                "encoding": {"x": {"datum": 0}},
            },
        ],
    }


def thinned(values: list[T]) -> list[T]:
    """Return at most ``POINTS`` values, at even distances."""
    step = -(-len(values) // POINTS)
    return values[::step] if step > 1 else values


def _frame(title: str, values: Sequence[Mapping[str, object]]) -> Spec:
    return {"title": title, "width": WIDTH, "height": HEIGHT, "data": {"values": values}}


def _axis(field: str, title: str, *, zero: bool = True) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": zero}}
