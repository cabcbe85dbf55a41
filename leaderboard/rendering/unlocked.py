"""Figures that are published once the organizers release them: intervals, stable views, and the tasks themselves.

Only this module decides what is released; in the documents, everything else is null. ``revealed`` unlocks everything. An early release
unlocks intervals or stable views, but of the latter only ranks and agreement, because a mean rank such as 3.25 reveals the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard.rendering.documents import (
    Flip,
    Interval,
    Intervals,
    RevealedTask,
    Row,
    StableViews,
    View,
    rounded,
)
from leaderboard.snapshot import Board, Figures, PhaseSite, Rounding, RowFigures

INTERVALS, STABLE_VIEWS = "intervals", "stable_views"  # possible items of ``leaderboard.publish``
VIEW_TITLES = {"mean_rank": "Mean rank", "borda": "Borda count", "iqm": "Interquartile mean of Q"}
LOCKED = dict.fromkeys((INTERVALS, STABLE_VIEWS, "tasks", "weighted_ranks"))


def unlocked(
    phase: PhaseSite, board: Board | None, rows: Sequence[Row], publish: frozenset[str]
) -> dict[str, Any]:
    """Return the fields of a phase's document that may be locked, for its newest board and the rows of that."""
    figures = None if board is None else board.figures
    if figures is None:
        return dict(LOCKED)
    fields: dict[str, Any] = dict(LOCKED)
    if phase.revealed or INTERVALS in publish:
        entries = tuple(_interval(row, phase.rules) for row in figures.rows)
        fields[INTERVALS] = Intervals(level=0.95, replicates=figures.replicates, entries=entries)
    if phase.revealed or STABLE_VIEWS in publish:
        views = tuple(_view(name, figures, rows, revealed=phase.revealed) for name in VIEW_TITLES)
        fields[STABLE_VIEWS] = StableViews(views=views, leave_one_out=_flips(figures, rows))
    if phase.revealed:
        fields["tasks"] = _tasks(figures)
        fields["weighted_ranks"] = tuple(row.weighted_rank for row in figures.rows)
    return fields


def _interval(row: RowFigures, rounding: Rounding) -> Interval:
    ends = row.q_interval and [
        float(rounded(rounding.value(end), rounding.decimals)) for end in row.q_interval
    ]
    return Interval(
        submission=row.submission,
        q_mean=(ends[0], ends[1]) if ends else None,
        rank=row.rank_interval,
        p_first=row.p_first,
        p_top3=row.p_top3,
        swap_with_next=row.swap_with_next,
    )


def _view(name: Any, figures: Figures, rows: Sequence[Row], *, revealed: bool) -> View:
    pairs = zip(rows, figures.rows, strict=True)
    ranks = tuple(None if row.rank is None else own.rank_by[name] for row, own in pairs)
    scores = tuple(row.views[name] for row in figures.rows) if revealed else None
    return View(name=name, tau=figures.tau.get(name), ranks=ranks, scores=scores)


def _flips(figures: Figures, rows: Sequence[Row]) -> tuple[Flip, ...]:
    names = {row.submission: row.team for row in rows}
    return tuple(
        Flip(left_out=names[left], ahead=names[ahead], behind=names[behind])
        for left in names  # in board order; stored figures have another
        for ahead, behind in figures.leave_one_out.get(left, ())
    )


def _tasks(figures: Figures) -> tuple[RevealedTask, ...]:
    tasks = (
        RevealedTask(
            name=name,
            weight=weight,
            quality=tuple(row.q[name] for row in figures.rows),
            score=tuple(row.score[name] for row in figures.rows),
        )
        for name, weight in figures.weights.items()
    )
    return tuple(sorted(tasks, key=lambda task: (-task.weight, task.name)))
