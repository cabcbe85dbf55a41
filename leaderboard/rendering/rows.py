"""The public part of a board, and the only part that renderers see.

Renderers get rows, never standings, so that a value which is not in a :class:`Row` cannot reach a file by accident. A board's ``private``
figures are never read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from leaderboard.rendering.methods import shown_method
from leaderboard.rendering.names import distinct_names
from leaderboard.snapshot import Board, Method, MoveKind, RowKey, Rules

NO_METHOD = Method()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One public line of a board.

    Attributes:
        team: Display name, not yet escaped.
        position: Line on the board, from 1.
        rank: Rank number; None for baselines and entries out of competition, which have a position but take no number.
        rank_by_mean: Rank number by mean Q; None for the same rows.
        q_text: Mean Q rounded to the phase's decimals.
        reliable: False for a negative mean Q (paper, Section 3).
        why: One sentence that says why the rank moved; empty if it did not.
        method: What the participant says about the method, not yet escaped.
    """

    position: int
    rank: int | None
    rank_by_mean: int | None
    team: str
    key: RowKey  # identifies the row on all boards; never printed
    q_text: str
    reliable: bool
    group: int
    submission: int
    submissions: int
    last_submitted_at: datetime
    move: int
    kind: MoveKind
    baseline: bool
    eligible: bool
    why: str
    method: Method = NO_METHOD

    @property
    def has_method(self) -> bool:
        """Whether it has information about its method."""
        return self.method != NO_METHOD

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a reader needs to understand the row."""
        notes = []
        if self.baseline:
            notes.append("baseline")
        if not self.eligible:
            notes.append("out of competition")
        if not self.reliable:
            notes.append("unreliable: mean Q below zero")
        return tuple(notes)


def rounded(q_mean: float, decimals: int) -> str:
    """Return mean Q as it is printed everywhere, without a sign if it rounds to zero."""
    text = f"{q_mean:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def public_rows(board: Board, rules: Rules, methods: Mapping[int, Method] | None = None) -> tuple[Row, ...]:
    """Return a board's rows in its order; ``methods`` maps submission pks to methods."""
    told = methods or {}
    names = distinct_names((standing.key, standing.team) for standing in board.standings)
    triggers = frozenset(board.triggers)
    causes = [names[standing.key] for standing in board.standings if standing.submission in triggers]
    rows = []
    for position, standing in enumerate(board.standings, 1):
        text = rounded(rules.value(standing.q_mean), rules.decimals)
        rows.append(
            Row(
                position=position,
                rank=standing.rank if standing.numbered else None,
                rank_by_mean=standing.rank_by_mean if standing.numbered else None,
                team=names[standing.key],
                key=standing.key,
                q_text=text,
                reliable=not text.startswith("-"),
                group=standing.group,
                submission=standing.submission,
                submissions=standing.submissions,
                last_submitted_at=standing.last_submitted_at.astimezone(UTC),
                move=standing.move,
                kind=standing.move_kind,
                baseline=standing.baseline,
                eligible=standing.eligible,
                why=_why(standing.move, standing.move_kind, causes),
                method=shown_method(told.get(standing.submission, NO_METHOD), known_as=names[standing.key]),
            )
        )
    return tuple(rows)


def _why(move: int, kind: MoveKind, causes: list[str]) -> str:
    """Return one sentence that says why an entry moved."""
    if kind is MoveKind.NEW:
        return "New on the board."
    if move == 0:
        return ""
    places = f"{abs(move)} place{'s' if abs(move) != 1 else ''} {'up' if move > 0 else 'down'}"
    if kind is MoveKind.OWN:
        return f"Moved {places} because its own scores changed."
    if not causes:
        return f"Moved {places} because the rules or other entries changed; its own scores did not."
    shown = ", ".join(f"“{name}”" for name in causes[:3]) + (
        f" and {len(causes) - 3} more" if len(causes) > 3 else ""
    )
    return f"Moved {places} without a change of its own scores, because of the submission{'s' if len(causes) > 1 else ''} of {shown}."


def minute(moment: datetime) -> str:
    """Return a time for people: UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def stamp(moment: datetime) -> str:
    """Return a time for programs: RFC 3339, UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting_sentence(teams: int) -> str:
    """Return the sentence that says that values are not shown yet."""
    have = "1 team has" if teams == 1 else f"{teams} teams have"
    return (
        f"{have} a scored submission. Values and ranks are shown when the organizers close this phase; until then, teams are"
        " listed by name."
    )


def movement(row: Row) -> str:
    """Return a row's movement as a short text and as one word."""
    if row.kind is MoveKind.NEW:
        return "new"
    if row.move == 0:
        return "–"
    return f"{'▲' if row.move > 0 else '▼'} {abs(row.move)} {row.kind.value}"
