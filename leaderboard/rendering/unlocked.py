"""Figures that are shown once the organizers release them: intervals, stable views, and the tasks themselves.

Only this module decides what is released: renderers get an :class:`Unlocked`, whose locked parts are empty. ``revealed`` unlocks
everything. An early release unlocks intervals or stable views, but of the latter only ranks and agreement, because a mean rank such as 3.25
reveals the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures import Figures, RowFigures
from leaderboard.rendering.rows import Row, rounded
from leaderboard.snapshot import Board, PhaseSite, Rules

INTERVALS, STABLE_VIEWS = "intervals", "stable_views"  # possible items of ``leaderboard.publish``
VIEW_TITLES = {"mean_rank": "Mean rank", "borda": "Borda count", "iqm": "Interquartile mean of Q"}


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The uncertainty of one row's figures.

    Attributes:
        q: Ends of the 95 % interval of mean Q, rounded like mean Q; None if there are too few folds.
        rank: Ends of the rank interval.
        p_first: Share of replicates with rank 1.
        p_top3: Share of replicates with rank 1 to 3.
        swap_with_next: Share of replicates in which the row below is ahead; None for the last row.
    """

    row: Row
    q: tuple[str, str] | None
    rank: tuple[int, int]
    p_first: float
    p_top3: float
    swap_with_next: float | None


@dataclass(frozen=True, kw_only=True)
class View:
    """One alternative standing, in board order: ranks (None if no number is printed) and, after the reveal, scores."""

    name: str
    title: str
    tau: float | None
    ranks: tuple[int | None, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One hidden task, after the reveal: its weight and every row's quality score in board order."""

    name: str
    weight: float
    quality: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Unlocked:
    """The released figures of one phase; empty parts are locked.

    Attributes:
        flips: Triples (left out, ahead, behind): leaving the first row out of the weights reverses the order of the other two.
        weighted_ranks: The values that decide the official order, in board order.
    """

    rows: tuple[Row, ...] = ()
    replicates: int = 0
    intervals: tuple[Interval, ...] = ()
    views: tuple[View, ...] = ()
    flips: tuple[tuple[str, str, str], ...] = ()
    tasks: tuple[Task, ...] = ()
    weighted_ranks: tuple[float, ...] = ()


def unlocked(phase: PhaseSite, board: Board, rows: tuple[Row, ...], publish: frozenset[str]) -> Unlocked:
    """Return the released figures for a phase's newest board and its rows."""
    wanted = {INTERVALS, STABLE_VIEWS} if phase.revealed else publish & {INTERVALS, STABLE_VIEWS}
    if not wanted:
        return Unlocked()
    figured = board.private.figures
    if figured is None:
        return Unlocked()
    known = {row.key: row for row in figured.rows}
    ordered = [known[row.key] for row in rows]
    views = STABLE_VIEWS in wanted
    return Unlocked(
        rows=rows,
        replicates=figured.replicates,
        intervals=tuple(_interval(row, known[row.key], phase.rules) for row in rows)
        if INTERVALS in wanted
        else (),
        views=tuple(_view(name, figured, rows, ordered, phase.revealed) for name in VIEW_TITLES)
        if views
        else (),
        flips=_flips(figured, rows) if views else (),
        tasks=_tasks(figured, ordered) if phase.revealed else (),
        weighted_ranks=tuple(row.weighted_rank for row in ordered) if phase.revealed else (),
    )


def _text(q_mean: float, rules: Rules) -> str:
    return rounded(rules.value(q_mean), rules.decimals)


def _interval(row: Row, known: RowFigures, rules: Rules) -> Interval:
    q = known.q_interval
    return Interval(
        row=row,
        q=None if q is None else (_text(q[0], rules), _text(q[1], rules)),
        rank=known.rank_interval,
        p_first=known.p_first,
        p_top3=known.p_top3,
        swap_with_next=known.swap_with_next,
    )


def _view(
    name: str, figured: Figures, rows: Sequence[Row], ordered: Sequence[RowFigures], revealed: bool
) -> View:
    scores = tuple({"mean_rank": row.mean_rank, "borda": row.borda, "iqm": row.iqm}[name] for row in ordered)
    return View(
        name=name,
        title=VIEW_TITLES[name],
        tau=figured.tau.get(name),
        ranks=tuple(
            None if row.rank is None else known.rank_by[name]
            for row, known in zip(rows, ordered, strict=True)
        ),
        scores=scores if revealed else (),
    )


def _flips(figured: Figures, rows: Sequence[Row]) -> tuple[tuple[str, str, str], ...]:
    names = {row.submission: row.team for row in rows}
    return tuple(
        (names[left.submission], names[ahead], names[behind])
        for left in figured.leave_one_out
        for ahead, behind in left.flips
        if {left.submission, ahead, behind} <= names.keys()
    )


def _tasks(figured: Figures, ordered: Sequence[RowFigures]) -> tuple[Task, ...]:
    tasks = (
        Task(name=name, weight=figured.weights[name], quality=tuple(row.q[name] for row in ordered))
        for name in figured.tasks
    )
    return tuple(sorted(tasks, key=lambda task: (-task.weight, task.name)))


def unlocked_json(shown: Unlocked) -> dict[str, object]:
    """Return the unlocked parts of the phase's JSON."""
    document: dict[str, object] = {}
    if shown.intervals:
        document["intervals"] = {
            "level": 0.95,
            "replicates": shown.replicates,
            "entries": [
                {
                    "submission": one.row.submission,
                    "q_mean": None if one.q is None else [float(end) for end in one.q],
                    "rank": list(one.rank),
                    "p_first": one.p_first,
                    "p_top3": one.p_top3,
                    "swap_with_next": one.swap_with_next,
                }
                for one in shown.intervals
            ],
        }
    if shown.views:
        document["stable_views"] = {
            "views": [
                {"name": view.name, "tau": view.tau, "ranks": list(view.ranks)}
                | ({"scores": list(view.scores)} if view.scores else {})
                for view in shown.views
            ],
            "leave_one_out": [
                {"left_out": out, "ahead": ahead, "behind": behind} for out, ahead, behind in shown.flips
            ],
        }
    if shown.tasks:
        document["tasks"] = [
            {"name": task.name, "weight": task.weight, "quality": list(task.quality)} for task in shown.tasks
        ]
        document["weighted_ranks"] = list(shown.weighted_ranks)
    return document
