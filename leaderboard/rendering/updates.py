"""Every update of a board in words: whose submissions came to count, and who moved.

Of a row only its name, its movement and the reason for it are taken; a long history of many teams is told in time proportional to its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.names import distinct_names
from leaderboard.rendering.rows import minute
from leaderboard.snapshot import Board, MoveKind, RowKey

MOVES = 12  # that are named of each update


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
        at: When it was made, for people.
        who: Teams whose submissions came to count.
        moves: The first of the rows that moved or are new, in board order.
        more: How many others did.
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
