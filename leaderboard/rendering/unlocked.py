"""Figures that are published with the reveal: the tasks themselves, the intervals, and what the order of the entries depends on.

Only this module decides what is published; in the documents of a phase that is not revealed, all of them are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard.rendering.documents import (
    EntryStability,
    Flip,
    Interval,
    Intervals,
    RevealedTask,
    Row,
    rounded,
)
from leaderboard.rules import Rounding
from leaderboard.snapshot import Board, Figures, PhaseSite, RowFigures

LOCKED = dict.fromkeys(("intervals", "leave_one_out", "stability", "tasks", "weighted_ranks"))


def unlocked(phase: PhaseSite, board: Board | None, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the fields of a phase's document that may be locked, for its newest board and the rows of that."""
    figures = None if board is None else board.figures
    if figures is None or not phase.revealed:
        return dict(LOCKED)
    entries = tuple(_interval(row, phase.rules.rounding) for row in figures.rows)
    tasks = _tasks(figures)
    return {
        "intervals": Intervals(level=0.95, entries=entries),
        "leave_one_out": _flips(figures, rows),
        "stability": _stability(figures, tasks),
        "tasks": tasks,
        "weighted_ranks": tuple(row.weighted_rank for row in figures.rows),
    }


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


def _stability(figures: Figures, tasks: Sequence[RevealedTask]) -> tuple[EntryStability, ...] | None:
    entries = tuple(
        EntryStability(
            submission=row.submission,
            without=tuple(row.stability.without[task.name] for task in tasks),
            p_first=row.stability.p_first,
            keeps_order=row.stability.keeps_order,
        )
        for row in figures.rows
        if row.stability
    )
    return entries or None


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
