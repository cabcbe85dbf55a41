"""``leaderboard/history.jsonl``: one line per board, in a file that is only appended to.

A line has the rows that changed since the previous board (on the first board, all rows), so the file grows with the number of changes, not
of teams. It has no tie groups, which come from random replicates, so each line follows from the register alone. Replaying the lines of a
phase in order, with the team's name as the key, gives every published board. There is one exception: if a name is removed from all boards,
its row goes on under a pseudonym, with the same submission, and no line records the removal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from leaderboard.rendering.documents import HistoryLine, HistoryRow, Row, stamp
from leaderboard.rendering.rows import public_rows
from leaderboard.rendering.shown import file_stems
from leaderboard.snapshot import Board, PhaseSite, Site

_OURS = re.compile(
    rb'^\{"version":1,"phase":"([\w-]+)","sequence":(\d+),"made_at":"([\w:-]+)",', re.MULTILINE | re.ASCII
)


def update_history(existing: bytes | None, site: Site) -> bytes:
    """Return the history with the lines of new boards appended.

    Existing lines are kept byte for byte. A board is identified by phase, sequence and time, so a worker with a new database continues
    after the old lines.
    """
    kept = existing or b""
    if kept and not kept.endswith(b"\n"):
        kept += b"\n"
    known = _known(kept)
    stems = file_stems(site)
    fresh = sorted(
        (stamp(board.made_at), place, board.sequence, line)
        for place, phase in enumerate(site.phases)
        for board, line in history_lines(phase, stems[phase.codename], known)
    )
    return kept + b"".join(line + b"\n" for *_, line in fresh)


def unrecorded(existing: bytes | None, site: Site) -> tuple[Board, ...]:
    """Return the boards of a site that are not in a history yet, and which the next push publishes."""
    known, stems = _known(existing or b""), file_stems(site)
    return tuple(
        board
        for phase in site.phases
        for board in phase.history
        if (stems[phase.codename], board.sequence, stamp(board.made_at)) not in known
    )


def _known(history: bytes) -> set[tuple[str, int, str]]:
    return {
        (phase.decode(), int(sequence), made_at.decode())
        for phase, sequence, made_at in _OURS.findall(history)
    }


def history_lines(
    phase: PhaseSite, stem: str, known: Collection[tuple[str, int, str]] = ()
) -> Iterator[tuple[Board, bytes]]:
    """Yield the boards of a phase with their lines, except known ones: stem, sequence and time."""
    for place, board in enumerate(phase.history):
        if (stem, board.sequence, stamp(board.made_at)) in known:
            continue
        rules = board.rules_then(phase.rules)
        before = _facts(public_rows(phase.history[place - 1], rules) if place else ())
        rows = public_rows(board, rules)
        now = _facts(rows)
        line = HistoryLine(
            version=1,
            phase=stem,
            sequence=board.sequence,
            made_at=board.made_at,
            triggers=board.triggers,
            changed=tuple(row for row in rows if before.get(row.team) != now[row.team]),
            left=tuple(team for team in before if team not in now),
        )
        yield board, line.to_bytes()


def _facts(rows: Sequence[Row]) -> dict[str, tuple[object, ...]]:
    """Return what the history tells of each row, by team."""
    return {row.team: tuple(getattr(row, name) for name in HistoryRow.model_fields) for row in rows}
