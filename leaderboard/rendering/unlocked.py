"""What is shown beyond the board once the organizers allow it: intervals, stable views, and the tasks themselves.

The gate is here and nowhere else: renderers get an :class:`Unlocked`, whose parts are empty as long as they are locked. ``revealed``
opens everything; an early release opens intervals or stable views, of the latter only ranks and agreement, because a mean rank such as
3.25 tells how many tasks there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures import Figures, RowFigures
from leaderboard.ranking import assess, figures
from leaderboard.rendering.rows import Row, rounded
from leaderboard.snapshot import Board, PhaseSite, Rules

INTERVALS, STABLE_VIEWS = "intervals", "stable_views"  # what ``leaderboard.publish`` may name
VIEW_TITLES = {"mean_rank": "Mean rank", "borda": "Borda count", "iqm": "Interquartile mean of Q"}


@dataclass(frozen=True, kw_only=True)
class Interval:
    """How sure one row's figures are.

    Attributes:
        q: Ends of the 95 % interval of mean Q, rounded as mean Q is; None with too few folds to tell.
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
    """One alternative standing; ranks (None where no number is printed) and, once revealed, figures in board order."""

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
    """What may be shown of one phase beyond its board; empty parts are locked or unknown.

    Attributes:
        flips: (left out, ahead, behind): leaving the first row out of the weights turns the order of the other two round.
        weighted_ranks: What the official order sorts by, in board order.
    """

    rows: tuple[Row, ...] = ()
    replicates: int = 0
    intervals: tuple[Interval, ...] = ()
    views: tuple[View, ...] = ()
    flips: tuple[tuple[str, str, str], ...] = ()
    tasks: tuple[Task, ...] = ()
    weighted_ranks: tuple[float, ...] = ()


def unlocked(phase: PhaseSite, board: Board, rows: tuple[Row, ...], publish: frozenset[str]) -> Unlocked:
    """Return what may be shown of a phase beyond its newest board and that board's rows."""
    wanted = {INTERVALS, STABLE_VIEWS} if phase.revealed else publish & {INTERVALS, STABLE_VIEWS}
    if not wanted:
        return Unlocked()
    figured = _figures(phase, board)
    known = {row.key: row for row in figured.rows} if figured else {}
    if figured is None or any(row.key not in known for row in rows):
        return Unlocked(rows=rows)  # a board from before these figures were kept
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


def _figures(phase: PhaseSite, board: Board) -> Figures | None:
    """Return the board's figures, made again from the snapshot if the board does not carry them."""
    if board.private.figures is not None or phase.snapshot is None:
        return board.private.figures
    assessment = assess(phase.snapshot)
    return None if assessment is None else figures(assessment)


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
    """Return the parts of the phase's JSON that are open."""
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
