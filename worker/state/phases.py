"""The phases with their records and boards, and what the challenge attests: events, commitments, the public log, reveals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from worker.state.rows import Event, PhaseRow
from worker.state.schema import (
    AT_ONCE,
    Tables,
    batches,
    boards,
    commitments,
    events,
    phases,
    records,
    reveals,
)

_PHASE = sa.select(phases).where(phases.c.phase == sa.bindparam("codename"))
_RECORD = sa.select(records.c.document).where(records.c.hash == sa.bindparam("name"))
_NEWEST_BOARD = (
    sa.select(boards.c.document)
    .where(boards.c.phase == sa.bindparam("codename"))
    .order_by(boards.c.sequence.desc())
    .limit(1)
)
_PUBLIC = sa.select(commitments.c.public).order_by(commitments.c.sequence)
_LAST_BATCH = sa.select(batches.c.sequence, batches.c.line).order_by(batches.c.sequence.desc()).limit(1)
_COMMITMENT = sa.select(events.c.commitment).where(events.c.id == sa.bindparam("event"))


class Phases(Tables):
    """Methods for phases, their records and their boards."""

    def phases(self) -> list[str]:
        """Return all phases about which something was recorded."""
        return list(self._connection.execute(sa.select(phases.c.phase).order_by(phases.c.phase)).scalars())

    def phase_record(self, phase: str) -> PhaseRow | None:
        """Return a phase's row."""
        return next(iter(self._all(PhaseRow, _PHASE, codename=phase)), None)

    def record_phase(self, phase: str, *, record: str, protocol_hash: str, tasks: Mapping[str, str]) -> None:
        """Make a record the current one of a phase."""
        self._put(phases, {"phase": phase}, record=record, protocol_hash=protocol_hash, tasks=dict(tasks))

    def add_record(self, name: str, document: bytes) -> None:
        """Store a record under its hash."""
        self._put(records, {"hash": name}, document=document)

    def record(self, name: str) -> bytes:
        """Return the compressed document of a record."""
        return bytes(self._connection.execute(_RECORD, {"name": name}).scalar_one())

    def close_phase(self, phase: str, *, at: datetime | None) -> None:
        """Close a phase's board, or reopen it with None."""
        self._connection.execute(phases.update().where(phases.c.phase == phase).values(closed_at=at))

    def boards(self, phase: str, *, after: int = 0, at_most: int | None = None) -> list[str]:
        """Return the JSON documents of a phase's boards in sequence, beginning after number ``after``."""
        query = sa.select(boards.c.document).where(boards.c.phase == phase, boards.c.sequence > after)
        return list(self._connection.execute(query.order_by(boards.c.sequence).limit(at_most)).scalars())

    def newest_board(self, phase: str) -> str | None:
        """Return the JSON document of a phase's latest board, None if it has none."""
        return self._connection.execute(_NEWEST_BOARD, {"codename": phase}).scalar()

    def board_number(self, phase: str) -> int:
        """Return the number of a phase's latest board, 0 if it has none."""
        query = sa.select(sa.func.max(boards.c.sequence)).where(boards.c.phase == phase)
        return self._connection.execute(query).scalar() or 0

    def save_board(self, phase: str, sequence: int, document: str) -> None:
        """Append a board to the history."""
        self._put(boards, {"phase": phase, "sequence": sequence}, document=document)


class Attestations(Tables):
    """Methods for events, commitments, the public log and reveals."""

    def commitments(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all commitments, oldest first, each as its public entry and the secret part that opens it."""
        rows = self._connection.execute(sa.select(commitments).order_by(commitments.c.sequence))
        return [(row.public, row.private) for row in rows]

    def public_commitments(self) -> list[dict[str, Any]]:
        """Return the public entries of all commitments, oldest first."""
        return list(self._connection.execute(_PUBLIC).scalars())

    def add_commitment(self, sequence: int, public: dict[str, Any], private: dict[str, Any]) -> None:
        """Append a commitment."""
        self._connection.execute(
            commitments.insert().values(sequence=sequence, public=public, private=private)
        )

    def batches(self) -> list[str]:
        """Return the lines of the public log."""
        return list(
            self._connection.execute(sa.select(batches.c.line).order_by(batches.c.sequence)).scalars()
        )

    def last_batch(self) -> tuple[int, str | None]:
        """Return the number and the text of the last line of the public log; 0 and None if it is empty."""
        row = self._connection.execute(_LAST_BATCH).first()
        return (0, None) if row is None else (row.sequence, row.line)

    def fillers(self) -> dict[int, str]:
        """Return the keys of the filler entries in the lines of the public log."""
        rows = self._connection.execute(sa.select(batches).where(batches.c.fillers.is_not(None)))
        return {row.sequence: row.fillers for row in rows}

    def add_batch(
        self, sequence: int, line: str, commitments: Sequence[str], *, fillers: str | None = None
    ) -> None:
        """Append a batch, and mark its commitments as published."""
        self._connection.execute(batches.insert().values(sequence=sequence, line=line, fillers=fillers))
        for commitment in commitments:
            self._connection.execute(
                events.update().where(events.c.commitment == commitment).values(batch=sequence)
            )

    def remove_batches(self, after: int) -> None:
        """Remove the batches after a number, whose commitments wait for the next batch again."""
        self._connection.execute(events.update().where(events.c.batch > after).values(batch=None))
        self._connection.execute(batches.delete().where(batches.c.sequence > after))

    def reveals(self) -> dict[str, dict[str, str]]:
        """Return what was revealed: phase to path to text."""
        rows = self._connection.execute(sa.select(reveals))
        return {row.phase: row.files for row in rows}

    def revealed(self) -> list[str]:
        """Return the phases that were revealed."""
        return list(self._connection.execute(sa.select(reveals.c.phase).order_by(reveals.c.phase)).scalars())

    def add_reveal(self, phase: str, files: dict[str, str]) -> None:
        """Reveal a phase, or replace its reveal."""
        self._put(reveals, {"phase": phase}, files=files)

    def add_event(
        self, *, subject: str, facts: str, fields: Mapping[str, Any], nonce: str, commitment: str
    ) -> None:
        """Append an event, which the next batch will publish."""
        self._connection.execute(
            events.insert().values(
                kind=fields["kind"],
                subject=subject,
                phase=fields["phase"],
                facts=facts,
                fields=dict(fields),
                nonce=nonce,
                commitment=commitment,
            )
        )

    def events(self, phase: str | None = None, *, kind: str | None = None, after: int = 0) -> Iterator[Event]:
        """Yield all events after an id, or those of a phase and of the whole challenge, or of a kind, oldest first.

        A list of all would take much memory.
        """
        query = sa.select(events).where(events.c.id > after).order_by(events.c.id)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        if phase is not None:
            query = query.where((events.c.phase == phase) | events.c.phase.is_(None))
        return self._each(Event, query, yield_per=AT_ONCE)

    def newest_event(self, phase: str) -> int:
        """Return the id of the newest event of a phase or of the whole challenge, 0 if there is none."""
        of_phase = (events.c.phase == phase) | events.c.phase.is_(None)
        return self._connection.execute(sa.select(sa.func.max(events.c.id)).where(of_phase)).scalar() or 0

    def events_about(
        self, subjects: Collection[str], *, kinds: Collection[str], besides: Collection[str]
    ) -> Iterator[Event]:
        """Yield the events of some kinds about some subjects, and all of other kinds, oldest first."""
        about = events.c.kind.in_(kinds) & events.c.subject.in_(subjects)
        query = sa.select(events).where(about | events.c.kind.in_(besides))
        return self._each(Event, query.order_by(events.c.id), yield_per=AT_ONCE)

    def event_commitment(self, number: int) -> str | None:
        """Return the commitment of the event with an id."""
        return self._connection.execute(_COMMITMENT, {"event": number}).scalar()

    def latest_event(self, kind: str, subject: str) -> Event | None:
        """Return the newest event of a kind about a subject."""
        query = sa.select(events).where(events.c.kind == kind, events.c.subject == subject)
        return next(iter(self._all(Event, query.order_by(events.c.id.desc()).limit(1))), None)

    def open_events(self) -> list[str]:
        """Return the commitments of events that no batch has published yet."""
        query = sa.select(events.c.commitment).where(events.c.batch.is_(None)).order_by(events.c.id)
        return list(self._connection.execute(query).scalars())
