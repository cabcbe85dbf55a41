"""What earlier boards tell: a line for each in ``leaderboard/history.jsonl``, and the page's updates with the rows that moved.

A line has the numbers of all rows in the board's order, their ranks and moves, and what else has changed since the previous board. It has
no tie groups, which come from random replicates, so each line follows from the register alone. Replaying the lines of a phase in order,
with the number of a row as the key, gives every published board.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from leaderboard.rendering.documents import HistoryLine, HistoryRow, printed, stamp
from leaderboard.rendering.rows import causes, minute, shown, team_names
from leaderboard.snapshot import Board, Decision, MoveKind, PhaseSite, RowKey, Site

HISTORY = "leaderboard/history.jsonl"
_OURS = re.compile(rb'\{"version":1,"phase":"([\w.-]+)","sequence":(\d+),"made_at":"([\w:-]+)",', re.ASCII)


BoardName = tuple[str, int, str]
"""Phase, sequence and time of a board."""


def update_history(existing: bytes | None, site: Site) -> bytes:
    """Return the history with the lines of new boards appended.

    Existing lines are kept byte for byte. A board is identified by phase, sequence and time, so a worker with a new database continues
    after the old lines.
    """
    kept = existing or b""
    if kept and not kept.endswith(b"\n"):
        kept += b"\n"
    recorded = recorded_boards(kept)
    fresh = sorted(
        (stamp(board.made_at), place, board.sequence, line)
        for place, phase in enumerate(site.phases)
        for board, line in history_lines(phase, recorded)
    )
    return kept + b"".join(line + b"\n" for *_, line in fresh)


def unrecorded(existing: bytes | None, site: Site) -> tuple[Board, ...]:
    """Return the boards of a site that are not in a history yet, and which the next push publishes."""
    recorded = recorded_boards(existing or b"")
    return tuple(
        board for phase in site.phases for board in phase.history if board_name(board) not in recorded
    )


def board_name(board: Board) -> BoardName:
    """Return by what a board is known in the history."""
    return board.phase, board.sequence, stamp(board.made_at)


def recorded_boards(history: bytes) -> set[BoardName]:
    """Return the boards that have a line in a history."""
    names, start = set(), 0
    while start < len(history):  # line by line, because lines are long and only their beginnings count
        if ours := _OURS.match(history, start):
            names.add((ours[1].decode(), int(ours[2]), ours[3].decode()))
        start = (history.find(b"\n", start) + 1) or len(history)
    return names


def history_lines(phase: PhaseSite, recorded: Collection[BoardName] = ()) -> Iterator[tuple[Board, bytes]]:
    """Yield the boards of a phase with their lines, except known ones: codename, sequence and time."""
    numbers: dict[RowKey, int] = {}

    @lru_cache(maxsize=2)
    def rows(place: int) -> list[HistoryRow]:
        board = phase.history[place]
        return [
            HistoryRow(row=numbers[standing.key], **row)
            for standing, row in zip(board.standings, shown(board, board.rounding), strict=True)
        ]

    for place, board in enumerate(phase.history):
        for standing in board.standings:
            numbers.setdefault(standing.key, len(numbers) + 1)
        if board_name(board) in recorded:
            continue
        before, now = set(rows(place - 1) if place else ()), rows(place)
        line = HistoryLine(
            version=1,
            phase=phase.codename,
            sequence=board.sequence,
            made_at=board.made_at,
            triggers=board.triggers,
            decimals=board.rounding.decimals,
            ladder_step=board.rounding.ladder_step,
            changed=tuple(row for row in now if row not in before),
            order=tuple(row.row for row in now),
            rank=tuple(row.rank if row.numbered else None for row in board.standings),
            rank_by_mean=tuple(row.rank_by_mean if row.numbered else None for row in board.standings),
            move=tuple(row.move for row in board.standings),
            own=tuple(numbers[row.key] for row in board.standings if row.move_kind is MoveKind.OWN),
        )
        yield board, line.to_bytes()


MOVES = 12  # how many moves each update names


def updates(history: Sequence[Board], decisions: Sequence[Decision]) -> list[dict[str, object]]:
    """Return all updates of the board, the newest first, for a template.

    Returns:
        ``at``: Its time, for people.
        ``causes``: What made the board differ from the one before, as a sentence.
        ``moves``: The first ``MOVES`` rows that moved or are new, in board order, each with its name.
        ``more``: Number of further rows that did.
    """
    listed: list[dict[str, object]] = []
    for before, board in zip((None, *history), history, strict=False):
        names = team_names(board)
        moved = [row for row in board.standings if row.move or row.move_kind is MoveKind.NEW]
        listed.append(
            {
                "at": minute(board.made_at),
                "causes": causes(board, before, names, decisions),
                "moves": [(names[row.key], row) for row in moved[:MOVES]],
                "more": len(moved[MOVES:]),
            }
        )
    return listed[::-1]


def past_submissions(phase: PhaseSite) -> list[list[dict[str, object]]]:
    """Return for each row of a phase's newest board the submissions that have counted for it, the newest first, for a template.

    Returns:
        ``at``: Time of the first board with it.
        ``q_text``: Mean Q as it was printed there.
        ``rank``: Its rank there.
    """
    pasts: dict[RowKey, list[dict[str, object]]] = {}
    listed: set[int] = set()
    for board in phase.history:
        rounding, at = board.rounding, minute(board.made_at)
        for row in board.standings:
            if row.submission not in listed:
                listed.add(row.submission)
                past: dict[str, object] = {
                    "at": at,
                    "q_text": printed(rounding.value(row.q_mean), rounding.decimals, rounding.ladder_step),
                    "rank": row.rank if row.numbered else None,
                }
                pasts.setdefault(row.key, []).insert(0, past)
    newest = phase.history[-1].standings if phase.history else ()
    return [pasts.get(row.key, []) for row in newest]
