"""The organizer's private report on a phase: all figures, as a JSON document and a self-contained page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leaderboard.figures import Private, RowFigures
from leaderboard.ranking import REPLICATES, assess, figures, fingerprint
from leaderboard.rendering import templates
from leaderboard.report.report_document import ReportDocument, Spread, report_document
from leaderboard.snapshot import Board, PhaseSnapshot
from scoring.tasks import TaskPlace


@dataclass(frozen=True, kw_only=True)
class Report:
    """One phase's report.

    Attributes:
        document: JSON-ready; it has figures of hidden tasks, so the organizer must not pass it on before the reveal.
        html: The same report as a self-contained page.
    """

    document: ReportDocument
    html: str

    @property
    def json(self) -> str:
        """The document as text."""
        return json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def report(
    phase: PhaseSnapshot,
    boards: Sequence[Board],
    *,
    made_at: datetime,
    places: Sequence[TaskPlace] = (),
    alike: Mapping[int, NDArray[np.float32]] | None = None,
    replicates: int = REPLICATES,
) -> Report:
    """Make the private report of a phase.

    Args:
        phase: The current state of the phase.
        boards: Its boards so far, for weights over time and moves.
        made_at: Time of the report, with a time zone.
        places: Places of task packages in the tree of groups, with the ceilings of their mean scores; those of other phases are ignored.
        alike: Submission to its :func:`leaderboard.report.near_copies.similarities_of_rows`, for those that are compared; None if none are.
        replicates: Number of bootstrap replicates.
    """
    assessment, private = assess(phase, replicates=replicates), Private()
    if assessment is not None:
        mark = fingerprint(phase, assessment.contenders, replicates)
        private = Private(fingerprint=mark, figures=figures(assessment))
    here = [place for place in places if place.identifier in phase.row_sets]
    document = report_document(phase, boards, here, assessment, private, alike=alike, made_at=made_at)
    rows = private.figures.rows if private.figures else ()
    return Report(document=document, html=_html(document, rows, boards))


def _html(document: ReportDocument, rows: Sequence[RowFigures], boards: Sequence[Board]) -> str:
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            report=document,
            teams={standing["submission"]: standing["team"] for standing in document["standings"]},
            rows=[standing | vars(row) for standing, row in zip(document["standings"], rows, strict=True)],
            heat=_heat([row.q for row in rows]),
            boxes={task: _boxes(cells) for task, cells in document["folds"].items()},
            sparks=_sparks([board.private.weights for board in boards]),
        )
    )


def _heat(quality: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return, for each row and task, Q over the task's largest absolute Q, so that each column uses the whole scale from -1 to 1."""
    if not quality:
        return []
    scale = {task: max(abs(row[task]) for row in quality) or 1.0 for task in quality[0]}
    return [{task: round(score / scale[task], 3) for task, score in row.items()} for row in quality]


def _boxes(cells: Sequence[Spread], width: float = 560.0) -> dict[str, object]:
    """Place box plots on a common axis, with scores cut at -1, so that a single failure does not compress all others."""
    low = max(-1.0, min([0.0, *(cell["min"] for cell in cells)]))
    high = max([1.0 if not cells else 0.0, *(cell["max"] for cell in cells), low + 0.1])

    def place(value: float) -> float:
        return round((min(max(value, low), high) - low) / (high - low) * width, 1)

    return {
        "width": width,
        "zero": place(0.0),
        "low": low,
        "high": high,
        "rows": [
            {
                "min": place(cell["min"]),
                "q1": place(cell["q1"]),
                "median": place(cell["median"]),
                "q3": place(cell["q3"]),
                "max": place(cell["max"]),
                "cut": cell["min"] < low,
                "failed": cell["failed"],
            }
            for cell in cells
        ],
    }


def _sparks(
    weights: Sequence[Mapping[str, float]], width: float = 360.0, height: float = 36.0
) -> list[dict[str, object]]:
    """Return each task's weights over the boards as the points of a line, with the same scale for all tasks."""
    tasks = sorted({task for board in weights for task in board})
    top = max((weight for board in weights for weight in board.values()), default=0.0) or 1.0
    step = width / max(len(weights) - 1, 1)
    return [
        {
            "task": task,
            "first": next(board[task] for board in weights if task in board),
            "last": next(board[task] for board in reversed(weights) if task in board),
            "points": " ".join(
                f"{index * step:.1f},{height - board[task] / top * (height - 2) - 1:.1f}"
                for index, board in enumerate(weights)
                if task in board
            ),
        }
        for task in tasks
    ]
