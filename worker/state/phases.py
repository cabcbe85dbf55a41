"""The phases: their records, which record is current, and whether a board is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from worker.state import schema
from worker.state.rows import PhaseRow
from worker.state.table import Tables


class Phases(Tables):
    """Methods for phases and their records."""

    def phases(self) -> list[str]:
        """Return all phases about which something was recorded."""
        return list(
            self._connection.execute(
                sa.select(schema.phases.c.phase).order_by(schema.phases.c.phase)
            ).scalars()
        )

    def phase_record(self, phase: str) -> PhaseRow | None:
        """Return a phase's row."""
        found = self._all(PhaseRow, sa.select(schema.phases).where(schema.phases.c.phase == phase))
        return found[0] if found else None

    def record_phase(self, phase: str, *, record: str, protocol_hash: str, tasks: Mapping[str, str]) -> None:
        """Make a record the current one of a phase."""
        values = {"record": record, "protocol_hash": protocol_hash, "tasks": dict(tasks)}
        table = schema.phases
        known = self._connection.execute(table.update().where(table.c.phase == phase).values(values))
        if known.rowcount == 0:
            self._connection.execute(table.insert().values(phase=phase, **values))

    def add_record(self, name: str, document: bytes, *, files: str | None) -> None:
        """Store a record under its hash; an existing one is kept, with the fingerprint of the files from which it was last read."""
        table = schema.records
        known = self._connection.execute(table.update().where(table.c.hash == name).values(files=files))
        if known.rowcount == 0:
            self._connection.execute(table.insert().values(hash=name, document=document, files=files))

    def record(self, name: str) -> bytes:
        """Return the compressed document of a record."""
        table = schema.records
        query = sa.select(table.c.document).where(table.c.hash == name)
        return bytes(self._connection.execute(query).scalar_one())

    def record_files(self, name: str) -> str | None:
        """Return the fingerprint of the files from which a record was read."""
        table = schema.records
        return self._connection.execute(sa.select(table.c.files).where(table.c.hash == name)).scalar()

    def freeze_phase(self, phase: str, *, at: datetime | None) -> None:
        """Freeze a phase's board, or thaw it with None."""
        self._connection.execute(
            schema.phases.update().where(schema.phases.c.phase == phase).values(frozen_at=at)
        )
