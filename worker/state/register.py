"""The register: the events that a challenge commits to, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from worker.state import schema
from worker.state.rows import Event
from worker.state.table import Tables


class Register(Tables):
    """Methods for the register."""

    def add_event(
        self, *, subject: str, facts: str, fields: Mapping[str, Any], nonce: str, commitment: str
    ) -> None:
        """Append an event, which the next batch will publish."""
        self._connection.execute(
            schema.events.insert().values(
                kind=fields["kind"],
                subject=subject,
                phase=fields["phase"],
                facts=facts,
                fields=dict(fields),
                nonce=nonce,
                commitment=commitment,
            )
        )

    def events(self, phase: str | None = None) -> list[Event]:
        """Return all events, or those of a phase and of the whole challenge, oldest first."""
        table = schema.events
        query = sa.select(table).order_by(table.c.id)
        if phase is not None:
            query = query.where((table.c.phase == phase) | table.c.phase.is_(None))
        return self._all(Event, query)

    def each_event(self, phase: str) -> Iterator[Event]:
        """Yield the events of a phase and of the whole challenge, oldest first, because a list of all takes much memory."""
        table = schema.events
        query = sa.select(table).where((table.c.phase == phase) | table.c.phase.is_(None))
        return self._each(Event, query.order_by(table.c.id))

    def latest_facts(self, kind: str) -> dict[str, str]:
        """Return for each subject the hash of the facts in its newest event of a kind."""
        table = schema.events
        newest = sa.select(sa.func.max(table.c.id)).where(table.c.kind == kind).group_by(table.c.subject)
        rows = self._connection.execute(
            sa.select(table.c.subject, table.c.facts).where(table.c.id.in_(newest))
        )
        return {row.subject: row.facts for row in rows}

    def first_events(self, kind: str, phase: str) -> dict[str, int]:
        """Return for each subject of a phase the place of its first event of a kind among all events."""
        table = schema.events
        query = sa.select(table.c.subject, sa.func.min(table.c.id)).where(
            table.c.kind == kind, table.c.phase == phase
        )
        rows = self._connection.execute(query.group_by(table.c.subject))
        return {row[0]: row[1] for row in rows}

    def latest_event(self, kind: str, subject: str) -> Event | None:
        """Return the newest event of a kind about a subject."""
        table = schema.events
        query = sa.select(table).where(table.c.kind == kind, table.c.subject == subject)
        found = self._all(Event, query.order_by(table.c.id.desc()).limit(1))
        return found[0] if found else None

    def open_events(self) -> list[str]:
        """Return the commitments of events that no batch has published yet."""
        table = schema.events
        query = sa.select(table.c.commitment).where(table.c.batch.is_(None)).order_by(table.c.id)
        return list(self._connection.execute(query).scalars())
