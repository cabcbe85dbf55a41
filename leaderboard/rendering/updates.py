"""What earlier boards tell: every update with its causes and the rows that moved, and the submissions that have counted for each row.

The time taken is proportional to the number of rows in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.decided import causes
from leaderboard.rendering.documents import printed
from leaderboard.rendering.names import distinct_names
from leaderboard.rendering.rows import minute
from leaderboard.snapshot import Board, Decision, MoveKind, PhaseSite, RowKey

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
        causes: What made the board differ from the one before, as a sentence.
        moves: The first ``MOVES`` rows that moved or are new, in board order.
        more: Number of further rows that did.
    """

    at: str
    causes: str
    moves: tuple[Move, ...]
    more: int


def updates(history: Sequence[Board], decisions: Sequence[Decision]) -> tuple[Update, ...]:
    """Return all updates, the newest first."""
    listed: list[Update] = []
    teams: Mapping[RowKey, str] = {}
    names: Mapping[RowKey, str] = {}
    for board in history:
        if (now := {row.key: row.team for row in board.standings}) != teams:
            teams, names = now, distinct_names(now.items())
        moved = [row for row in board.standings if row.move or row.move_kind is MoveKind.NEW]
        listed.append(
            Update(
                at=minute(board.made_at),
                causes=causes(board, names, decisions),
                moves=tuple(
                    Move(team=names[row.key], places=row.move, kind=row.move_kind) for row in moved[:MOVES]
                ),
                more=len(moved[MOVES:]),
            )
        )
    return tuple(reversed(listed))


@dataclass(frozen=True, kw_only=True)
class Past:
    """A submission of a team that has counted."""

    at: str  # time of the first board with it
    q_text: str
    rank: int | None  # on that board


def past_submissions(phase: PhaseSite) -> tuple[tuple[Past, ...], ...]:
    """Return for each row of a phase's newest board the submissions that have counted for it, the newest first."""
    pasts: dict[RowKey, list[Past]] = {}
    known: set[int] = set()
    for board in phase.history:
        rules = board.rules_then(phase.rules)
        for row in board.standings:
            if row.submission not in known:
                known.add(row.submission)
                past = Past(
                    at=minute(board.made_at),
                    q_text=printed(rules.value(row.q_mean), rules.decimals, rules.ladder_step),
                    rank=row.rank if row.numbered else None,
                )
                pasts.setdefault(row.key, []).insert(0, past)
    newest = phase.history[-1].standings if phase.history else ()
    return tuple(tuple(pasts[row.key]) if row.key in pasts else () for row in newest)
