"""From the published documents of a phase back to what they are rendered from, for a phase whose register is not public.

The history has every earlier board, and the phase's JSON has the rest. Rendering the result gives exactly the published files, so every
word of the page that differs was not made by the worker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from leaderboard.rendering.documents import NEWEST, HistoryLine, HistoryRow, PhaseDocument
from leaderboard.rules import Rounding
from leaderboard.snapshot import (
    Board,
    Figures,
    Method,
    MoveKind,
    PhaseSite,
    RowFigures,
    RowStability,
    Standing,
    WaitingTeam,
)


def read_site(document: PhaseDocument, lines: Sequence[HistoryLine]) -> PhaseSite:
    """Return the site of one phase that its documents were rendered from.

    Args:
        document: Its JSON.
        lines: Its lines of the history, oldest first.

    Raises:
        ValueError, LookupError: If the history and the JSON do not belong together.
    """
    history: list[Board] = []
    for board in each_board(lines):
        del history[board.sequence - 1 :]
        history.append(board)
    del history[document.sequence :]
    if history:
        history[-1] = _completed(history[-1], document)
    waiting = document.waiting
    return PhaseSite(
        codename=document.phase,
        rules=document.rules,
        history=tuple(history),
        waiting=None
        if waiting is None
        else tuple(
            WaitingTeam(
                key=(place, ""),
                team=team.team,
                submissions=team.submissions,
                last_submitted_at=team.last_submission,
            )
            for place, team in enumerate(waiting)
        ),
        revealed=document.tasks is not None,
        closed_at=document.closed_at,
        methods={
            row.submission: Method(
                name=row.method, project_url=row.project_url, publication_url=row.publication_url
            )
            for row in document.entries
        },
        decisions=tuple(replace(decision, effect="") for decision in document.decisions),
        terms=document.terms,
    )


def each_board(lines: Iterable[HistoryLine]) -> Iterator[Board]:
    """Yield the boards of one phase's history; their rows have the values that were shown, and no groups.

    A state that was restored from a backup goes on after an older board, so its lines take the place of later ones.
    """
    boards: list[Board] = []
    for line in lines:
        del boards[line.sequence - 1 :]
        boards.append(
            Board(
                phase=line.phase,
                sequence=line.sequence,
                made_at=line.made_at,
                triggers=line.triggers,
                standings=tuple(_standings(line, boards[-1].standings if boards else ())),
                rounding=Rounding(decimals=line.decimals, ladder_step=line.ladder_step),
                fingerprint="",
                figures=None,
            )
        )
        yield boards[-1]


def _standings(line: HistoryLine, earlier: Sequence[Standing]) -> Iterator[Standing]:
    """Yield the rows of a board: where a line says that they stand, with what it or the board before shows of them."""
    before = {row.team_key: row for row in earlier}
    shown: dict[int, HistoryRow | Standing] = {**before, **{row.row: row for row in line.changed}}
    columns, own = zip(line.order, line.rank, line.rank_by_mean, line.move, strict=True), set(line.own)
    for position, (number, rank, rank_by_mean, move) in enumerate(columns, 1):
        row = shown[number]
        moved = MoveKind.OWN if number in own else MoveKind.PASSIVE if move else MoveKind.NONE
        standing = Standing(
            rank=rank or position,
            rank_by_mean=rank_by_mean or position,
            team_key=number,
            team=row.team,
            submission=row.submission,
            q_mean=row.q_mean,
            baseline=row.baseline,
            eligible=row.eligible,
            group=0,  # this and the next one are only in the phase's JSON
            last_submitted_at=datetime.min.replace(tzinfo=UTC),
            submissions=row.submissions,
            move=move,
            move_kind=moved if number in before else MoveKind.NEW,
        )
        if {rank is None, rank_by_mean is None} != {not standing.numbered} or number in own - before.keys():
            raise ValueError("a line of the history has ranks or moves that its board does not")
        yield standing


def _completed(board: Board, document: PhaseDocument) -> Board:
    """Return the newest board with what only the JSON has."""
    standings = tuple(
        replace(
            standing,
            rank=row.rank_if_competing or standing.rank,
            apart=row.rank_if_competing is not None,
            last_submitted_at=row.last_submission,
            **{name: getattr(row, name) for name in NEWEST},
        )
        for standing, row in zip(board.standings, document.entries, strict=True)
    )
    return replace(board, standings=standings, figures=_figures(document))


def _figures(document: PhaseDocument) -> Figures | None:
    """Return the figures that a reveal has published."""
    if document.tasks is None or document.intervals is None or document.weighted_ranks is None:
        return None
    stability = document.stability or (None,) * len(document.entries)
    rows = zip(document.entries, document.intervals.entries, document.weighted_ranks, stability, strict=True)
    numbers = {row.team: row.submission for row in document.entries}
    pairs: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for flip in document.leave_one_out or ():
        pairs[numbers[flip.left_out]].append((numbers[flip.ahead], numbers[flip.behind]))
    return Figures(
        weights={task.name: task.weight for task in document.tasks},
        rows=tuple(
            RowFigures(
                submission=row.submission,
                q={task.name: task.quality[place] for task in document.tasks},
                score={task.name: task.score[place] for task in document.tasks},
                weighted_rank=weighted_rank,
                task_ranks={},
                q_interval=interval.q_mean,
                rank_interval=interval.rank,
                p_first=interval.p_first,
                p_top3=interval.p_top3,
                swap_with_next=interval.swap_with_next,
                stability=None
                if stable is None
                else RowStability(
                    without=dict(zip((task.name for task in document.tasks), stable.without, strict=True)),
                    p_first=stable.p_first,
                    keeps_order=stable.keeps_order,
                ),
            )
            for place, (row, interval, weighted_rank, stable) in enumerate(rows)
        ),
        leave_one_out={left_out: tuple(flips) for left_out, flips in pairs.items()},
    )
