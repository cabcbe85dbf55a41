"""The published history of any board: which rows moved, and whether their own values had changed.

A history has rank, team and value of each row at each moment. It is read from the ``leaderboard/history.jsonl`` that a challenge publishes,
or from a table with a line per moment and team, such as the output of ``board replay``.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from leaderboard.rendering import csv_cell, csv_text
from leaderboard.snapshot import MoveKind
from scoring.errors import OrganizerError

MOMENT = ("made_at", "updated_utc", "at", "time")
VALUE = ("q_mean", "mean_q", "score", "value")
"""Accepted names of the columns for the moment and for the value."""


@dataclass(frozen=True, kw_only=True)
class ShownRow:
    """A published row; ``rank`` is None for a row without a number, which ``position`` puts in order."""

    team: str
    position: int
    rank: int | None
    value: float


@dataclass(frozen=True, kw_only=True)
class ShownBoard:
    """The published rows of a phase from a moment on, by team."""

    phase: str
    made_at: str
    rows: Mapping[str, ShownRow]


@dataclass(frozen=True, kw_only=True)
class ShownMove:
    """A row with its movement since the previous board: places gained, and why."""

    row: ShownRow
    places: int
    kind: MoveKind


def read_history(text: str) -> tuple[ShownBoard, ...]:
    """Read a history, as JSON lines or as a table; boards keep the order of the file.

    Raises:
        OrganizerError: If the text is neither; the message names the line.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{"):
        return tuple(_published(text))
    return tuple(_tabled(text))


def moves(boards: Sequence[ShownBoard]) -> Iterator[tuple[ShownBoard, tuple[ShownMove, ...]]]:
    """Yield each board with its rows, best first, and their movement since the phase's previous board."""
    before: dict[str, ShownBoard] = {}
    for board in boards:
        old = before[board.phase].rows if board.phase in before else {}
        ordered = sorted(board.rows.values(), key=lambda row: (row.position, row.team))
        yield board, tuple(_move(row, old.get(row.team)) for row in ordered)
        before[board.phase] = board


def tally(boards: Sequence[ShownBoard]) -> dict[str, int]:
    """Count moves of rows whose own value changed, moves of other rows, and swaps of two rows whose values did not change."""
    kinds = Counter(move.kind for _, rows in moves(boards) for move in rows)
    phases = dict.fromkeys(board.phase for board in boards)
    swaps = sum(
        _swaps(old, new)
        for phase in phases
        for old, new in pairwise([board for board in boards if board.phase == phase])
    )
    return {
        "boards": len(boards),
        "own": kinds[MoveKind.OWN],
        "passive": kinds[MoveKind.PASSIVE],
        "swaps": swaps,
    }


def history_csv(boards: Sequence[ShownBoard]) -> str:
    """Return the history as CSV, with a line per board and row."""
    lines = [
        (
            board.phase,
            board.made_at,
            "" if move.row.rank is None else move.row.rank,
            csv_cell(move.row.team),
            repr(move.row.value),
            move.places,
            move.kind.value,
        )
        for board, rows in moves(boards)
        for move in rows
    ]
    return csv_text(["phase", "made_at", "rank", "team", "q_mean", "move", "move_kind"], lines)


def history_document(boards: Sequence[ShownBoard]) -> dict[str, Any]:
    """Return the history as a JSON-ready document: the counts, then each board's rows."""
    return {
        "tally": tally(boards),
        "boards": [
            {
                "phase": board.phase,
                "made_at": board.made_at,
                "rows": [
                    {
                        "rank": move.row.rank,
                        "team": move.row.team,
                        "q_mean": move.row.value,
                        "move": move.places,
                        "move_kind": move.kind.value,
                    }
                    for move in rows
                ],
            }
            for board, rows in moves(boards)
        ],
    }


def _move(row: ShownRow, old: ShownRow | None) -> ShownMove:
    if old is None:
        return ShownMove(row=row, places=0, kind=MoveKind.NEW)
    places = old.position - row.position
    if not places:
        return ShownMove(row=row, places=0, kind=MoveKind.NONE)
    return ShownMove(
        row=row, places=places, kind=MoveKind.PASSIVE if row.value == old.value else MoveKind.OWN
    )


def _swaps(old: ShownBoard, new: ShownBoard) -> int:
    same = [team for team, row in new.rows.items() if team in old.rows and old.rows[team].value == row.value]
    return sum(
        (old.rows[one].position - old.rows[other].position)
        * (new.rows[one].position - new.rows[other].position)
        < 0
        for one, other in combinations(same, 2)
    )


def _published(text: str) -> Iterator[ShownBoard]:
    """Rebuild the boards from a published history, whose lines hold only changes."""
    shown: dict[str, dict[str, ShownRow]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            rows = {
                str(facts["team"]): ShownRow(
                    team=str(facts["team"]),
                    position=int(facts["position"]),
                    rank=None if facts["rank"] is None else int(facts["rank"]),
                    value=float(facts["q_mean"]),
                )
                for facts in document["changed"]
            }
            phase, made_at, left = str(document["phase"]), str(document["made_at"]), set(document["left"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _unreadable(f"Line {number} is not a line of a published history") from None
        kept = {team: row for team, row in shown.get(phase, {}).items() if team not in left}
        shown[phase] = kept | rows
        yield ShownBoard(phase=phase, made_at=made_at, rows=dict(shown[phase]))


def _tabled(text: str) -> Iterator[ShownBoard]:
    """Group the lines of a table by phase and moment, in the order of the file."""
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        lines = list(reader)
    except csv.Error as error:
        raise _unreadable(f"The table is not CSV ({error})") from None
    columns = reader.fieldnames or ()
    moment, value = _column(columns, MOMENT), _column(columns, VALUE)
    for needed in ("rank", "team"):
        _column(columns, (needed,))
    boards: dict[tuple[str, str], dict[str, ShownRow]] = {}
    for number, line in enumerate(lines, 2):
        try:
            row = ShownRow(
                team=line["team"],
                position=int(line["rank"]),
                rank=int(line["rank"]),
                value=float(line[value]),
            )
        except (ValueError, TypeError):
            raise _unreadable(f"Line {number}: the rank or {value} is not a number") from None
        boards.setdefault((line.get("phase") or "", line[moment]), {})[row.team] = row
    for (phase, made_at), rows in boards.items():
        yield ShownBoard(phase=phase, made_at=made_at, rows=rows)


def _column(columns: Sequence[str], names: Sequence[str]) -> str:
    """Return the column with one of these names.

    Raises:
        OrganizerError: If there is none.
    """
    for name in names:
        if name in columns:
            return name
    raise _unreadable(f"The table has no column called {' or '.join(names)}")


def _unreadable(sentence: str) -> OrganizerError:
    return OrganizerError(
        f"{sentence}.",
        cure="Name the leaderboard/history.jsonl of a challenge, or a CSV table with the columns made_at, phase, rank, team and q_mean.",
        code="runs.history",
    )
