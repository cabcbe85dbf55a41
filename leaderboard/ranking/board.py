"""Make the next board of a phase, if anything visible has changed.

A new board is made only if a reader can see a change: a rank, a name, mean Q in its printed digits, a tie group, a count or date of public
submissions, a flag, or the order of rows. Private submissions, failures and repeated messages change none of these. Movement is relative to
the previous board and does not count as a change; if it did, every new board would need another one without the arrows.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from pydantic import TypeAdapter

from leaderboard.ranking.assessment import Assessment, Contender, Order, assess, counted
from leaderboard.rules import Rounding
from leaderboard.snapshot import Board, MoveKind, PhaseSnapshot, Standing
from scoring.documents import canonical

_BOARD = TypeAdapter(Board)


def next_board(phase: PhaseSnapshot, history: Sequence[Board], *, at: datetime) -> Board | None:
    """Return the board that follows ``history``, or None if no public row changed.

    The function is pure: equal arguments give equal boards, in any order of the entries. It is cheap if nothing changed.

    Args:
        phase: Everything that decides the board now.
        history: The phase's boards so far, oldest first; only the last one is read.
        at: Time of the new board, with a time zone.

    Raises:
        OrganizerError: If the entries cannot be compared, see :func:`leaderboard.ranking.assessment.assess`.
    """
    before = history[-1] if history else None
    contenders = counted(phase)
    content = fingerprint(phase, contenders)
    if before is not None and before.fingerprint == content and _has_names(before, contenders):
        return None
    board = following_board(phase, assess(phase), before, at=at)
    unchanged = [] if before is None else _content(before.standings, before.rounding)
    return None if _content(board.standings, phase.rules.rounding) == unchanged else board


def following_board(
    phase: PhaseSnapshot,
    order: Order | None,
    before: Board | None,
    *,
    at: datetime,
) -> Board:
    """Return the board of a moment, whether or not anything changed since the one before.

    Args:
        phase: Everything that decides the board.
        order: Its assessment, or only its order; the board then has neither groups nor figures.
        before: The board before it.
        at: Its time.
    """
    standings = () if order is None else _standings(phase, order, before)
    contenders = (
        () if order is None else tuple(sorted(order.contenders, key=lambda row: row.entry.submission))
    )
    earlier = set() if before is None else {standing.submission for standing in before.standings}
    return Board(
        phase=phase.codename,
        sequence=1 if before is None else before.sequence + 1,
        made_at=at,
        triggers=tuple(sorted({standing.submission for standing in standings} - earlier)),
        standings=standings,
        rounding=phase.rules.rounding,
        fingerprint=fingerprint(phase, contenders),
        figures=order.figures if isinstance(order, Assessment) else None,
    )


def _standings(phase: PhaseSnapshot, order: Order, before: Board | None) -> tuple[Standing, ...]:
    old = {} if before is None else {standing.key: standing for standing in before.standings}
    groups = order.groups if isinstance(order, Assessment) else (0,) * len(order.contenders)
    standings = []
    for index, contender in enumerate(order.contenders):
        entry, ranking = contender.entry, order.ranking
        team_key, method = contender.key
        rank, q_mean = ranking.ranks[index], ranking.means[index]
        move, kind = movement(rank, entry.submission, q_mean, old.get(contender.key))
        standings.append(
            Standing(
                rank=rank,
                rank_by_mean=ranking.ranks_by_mean[index],
                team_key=team_key,
                team=contender.name,
                submission=entry.submission,
                q_mean=q_mean,
                baseline=entry.baseline,
                eligible=entry.eligible,
                group=groups[index],
                apart=contender.apart(phase.rules),
                submissions=contender.submissions,
                last_submitted_at=contender.last_submitted_at,
                move=move,
                move_kind=kind,
                method=method,
            )
        )
    return tuple(standings)


def movement(rank: int, submission: int, q_mean: float, before: Standing | None) -> tuple[int, MoveKind]:
    """Return how far a row moved and why: own if another submission counts, with another mean Q.

    Sending the same embeddings again does not make a move the team's own, and neither does a rescore.
    """
    if before is None:
        return 0, MoveKind.NEW
    if before.rank == rank:
        return 0, MoveKind.NONE
    own = before.submission != submission and before.q_mean != q_mean
    return before.rank - rank, MoveKind.OWN if own else MoveKind.PASSIVE


def _content(standings: Sequence[Standing], rounding: Rounding) -> list[Standing]:
    """Return the rows as a reader can see them, without movement."""
    return [
        replace(standing, q_mean=rounding.value(standing.q_mean), move=0, move_kind=MoveKind.NONE)
        for standing in standings
    ]


def _has_names(board: Board, contenders: tuple[Contender, ...]) -> bool:
    names = {contender.key: contender.name for contender in contenders}
    return names == {standing.key: standing.team for standing in board.standings}


def fingerprint(phase: PhaseSnapshot, contenders: tuple[Contender, ...]) -> str:
    """Hash everything that decides a board, all its rules among it, except for the teams' names."""
    row_sets = sorted(phase.row_sets.items())
    decided = (phase.codename, phase.epsilon, phase.rules.model_dump_json())
    rows = [
        (
            row.key,
            (
                row.entry.submission,
                row.entry.baseline,
                row.entry.eligible,
                row.entry.submitted_at.timestamp(),
            ),
            (row.submissions, row.last_submitted_at.timestamp()),
            [len(row.entry.scores[task]) for task, _ in row_sets],
        )
        for row in contenders
    ]
    digest = hashlib.sha256(repr((decided, row_sets, rows)).encode("utf-8", "backslashreplace"))
    for row, (task, _) in itertools.product(contenders, row_sets):
        digest.update(np.asarray(row.entry.scores[task], "<f8").tobytes())
    return digest.hexdigest()


def append_board(history: list[Board], board: Board) -> None:
    """Append a board to the history, sharing what did not change, to save memory.

    Equal rows of consecutive boards are stored once, and so are equal names, times and numbers of a row that moved. Figures, which are the
    larger part of a board, are kept only for the last board.
    """
    if history:
        rows = {standing.key: standing for standing in history[-1].standings}
        history[-1] = replace(history[-1], figures=None)
        standings = tuple(_sharing(rows.get(row.key, row), row) for row in board.standings)
        board = replace(board, standings=standings)
    history.append(board)


def _sharing(old: Standing, new: Standing) -> Standing:
    """Return a row, made of the objects of the one before where they are equal."""
    if old == new:
        return old
    names = ("team_key", "team", "submission", "q_mean", "last_submitted_at", "method")
    return replace(
        new, **{name: getattr(old, name) for name in names if getattr(old, name) == getattr(new, name)}
    )


def to_json(board: Board) -> str:
    """Return a board as one line of JSON with sorted keys; floats are restored exactly."""
    return canonical(_BOARD.dump_python(board, mode="json")).decode()


def from_json(text: str) -> Board:
    """Read what :func:`to_json` wrote.

    Raises:
        ValueError: If the text is not the JSON of a board.
    """
    return _BOARD.validate_json(text)
