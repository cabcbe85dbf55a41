"""The phases: their records, which record is current, whether a board is frozen, the boards, and the organizer's choices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from worker.state.rows import PhaseRow
from worker.state.schema import Tables, boards, choices, phases, records


class Phases(Tables):
    """Methods for phases, their records and their boards."""

    def phases(self) -> list[str]:
        """Return all phases about which something was recorded."""
        return list(self._connection.execute(sa.select(phases.c.phase).order_by(phases.c.phase)).scalars())

    def phase_record(self, phase: str) -> PhaseRow | None:
        """Return a phase's row."""
        rows = self._all(PhaseRow, sa.select(phases).where(phases.c.phase == phase))
        return rows[0] if rows else None

    def record_phase(self, phase: str, *, record: str, protocol_hash: str, tasks: Mapping[str, str]) -> None:
        """Make a record the current one of a phase."""
        values = {"record": record, "protocol_hash": protocol_hash, "tasks": dict(tasks)}
        self._put(phases, {"phase": phase}, **values)

    def add_record(self, name: str, document: bytes) -> None:
        """Store a record under its hash."""
        self._put(records, {"hash": name}, document=document)

    def record(self, name: str) -> bytes:
        """Return the compressed document of a record."""
        query = sa.select(records.c.document).where(records.c.hash == name)
        return bytes(self._connection.execute(query).scalar_one())

    def freeze_phase(self, phase: str, *, at: datetime | None) -> None:
        """Freeze a phase's board, or thaw it with None."""
        self._connection.execute(phases.update().where(phases.c.phase == phase).values(frozen_at=at))

    def boards(self, phase: str, *, after: int = 0, at_most: int | None = None) -> list[str]:
        """Return the JSON documents of a phase's boards in sequence, beginning after number ``after``."""
        query = sa.select(boards.c.document).where(boards.c.phase == phase, boards.c.sequence > after)
        rows = self._connection.execute(query.order_by(boards.c.sequence).limit(at_most))
        return [row[0] for row in rows]

    def last_board(self, phase: str) -> int:
        """Return the number of a phase's latest board, 0 if it has none."""
        query = sa.select(sa.func.max(boards.c.sequence)).where(boards.c.phase == phase)
        return int(self._connection.execute(query).scalar() or 0)

    def newest_board(self, phase: str) -> str | None:
        """Return the JSON document of a phase's latest board, None if it has none."""
        query = sa.select(boards.c.document).where(boards.c.phase == phase)
        return self._connection.execute(query.order_by(boards.c.sequence.desc()).limit(1)).scalar()

    def save_board(self, phase: str, sequence: int, document: str) -> None:
        """Append a board to the history, or replace one with one without a name that was removed."""
        self._put(boards, {"phase": phase, "sequence": sequence}, document=document)

    def choices(self, phase: str) -> dict[int, int]:
        """Return the organizer's choices: team key to submission."""
        query = sa.select(choices).where(choices.c.phase == phase)
        return {row.team_key: row.submission for row in self._connection.execute(query)}

    def choose(self, phase: str, team_key: int, submission: int) -> None:
        """Choose the submission that counts for a team, regardless of the rule."""
        self._put(choices, {"phase": phase, "team_key": team_key}, submission=submission)
