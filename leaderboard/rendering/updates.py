"""List every update of a board: the teams with new submissions, and the rows that moved.

An update has only names, movements and their reasons. The time taken is proportional to the number of rows in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.names import distinct_names
from leaderboard.rendering.rows import minute
from leaderboard.snapshot import Board, MoveKind, RowKey

MOVES = 12  # how many moves each update names


@dataclass(frozen=True, kw_only=True)
class Move:
    """One row's movement: places gained, and why."""

    team: str
    places: int
    kind: MoveKind


@dataclass(frozen=True, kw_only=True)
class Update:
    """One update of the board.

    Attributes:
        at: Its time, for people.
        who: Teams with a new submission that counts.
        moves: The first ``MOVES`` rows that moved or are new, in board order.
        more: Number of further rows that did.
    """

    at: str
    who: tuple[str, ...]
    moves: tuple[Move, ...]
    more: int


def updates(history: Sequence[Board]) -> tuple[Update, ...]:
    """Return all updates, the newest first."""
    told: list[Update] = []
    teams: Mapping[RowKey, str] = {}
    names: Mapping[RowKey, str] = {}
    for board in history:
        if (now := {row.key: row.team for row in board.standings}) != teams:
            teams, names = now, distinct_names(now.items())
        triggers = frozenset(board.triggers)
        moved = [row for row in board.standings if row.move or row.move_kind is MoveKind.NEW]
        told.append(
            Update(
                at=minute(board.made_at),
                who=tuple(names[row.key] for row in board.standings if row.submission in triggers),
                moves=tuple(
                    Move(team=names[row.key], places=row.move, kind=row.move_kind) for row in moved[:MOVES]
                ),
                more=len(moved[MOVES:]),
            )
        )
    return tuple(reversed(told))
