"""What is done for submissions, and what is owed: attempts, the outbox of calls to EvalAI, and files that are wanted again."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from worker.state.columns import Instant
from worker.state.rows import AttemptRow, Owed
from worker.state.schema import Tables, attempts, outbox, submissions
from worker.state.states import Attempt, OutboxKind, Outcome


class Work(Tables):
    """Methods for attempts, the outbox and wanted files."""

    def open_attempt(self, pk: int, kind: Attempt, *, worker: str, now: datetime) -> int:
        """Open an attempt and return its id."""
        result = self._connection.execute(
            attempts.insert().values(submission=pk, kind=kind, worker=worker, opened_at=now)
        )
        key = result.inserted_primary_key
        if key is None:
            raise ValueError("the database returned no key")
        return int(key[0])

    def close_attempt(
        self,
        attempt: int,
        outcome: Outcome,
        *,
        now: datetime,
        reason: str = "",
        peak_memory_bytes: int | None = None,
    ) -> None:
        """Close an attempt, if it is still open, with its outcome."""
        self._connection.execute(
            attempts.update()
            .where(attempts.c.id == attempt, attempts.c.closed_at.is_(None))
            .values(closed_at=now, outcome=outcome, reason=reason, peak_memory_bytes=peak_memory_bytes)
        )

    def is_open(self, attempt: int) -> bool:
        """Return whether an attempt is still open, so that its result may be recorded."""
        query = sa.select(attempts.c.id).where(attempts.c.id == attempt, attempts.c.closed_at.is_(None))
        return self._connection.execute(query).first() is not None

    def open_attempts(self, kind: Attempt) -> set[int]:
        """Return the submissions with an open attempt of a kind."""
        return {row.submission for row in self.attempts(open_only=True) if row.kind is kind}

    def attempts(self, *, pk: int | None = None, open_only: bool = False) -> list[AttemptRow]:
        """Return attempts, oldest first."""
        query = sa.select(attempts).order_by(attempts.c.id)
        if pk is not None:
            query = query.where(attempts.c.submission == pk)
        if open_only:
            query = query.where(attempts.c.closed_at.is_(None))
        return self._all(AttemptRow, query)

    def last_turns(self) -> dict[int, datetime]:
        """Return for each team when an evaluation of one of its submissions last began."""
        query = (
            sa.select(submissions.c.team_key, sa.func.max(attempts.c.opened_at, type_=Instant()))
            .join(submissions, submissions.c.pk == attempts.c.submission)
            .where(attempts.c.kind == Attempt.EVALUATE, submissions.c.team_key.is_not(None))
            .group_by(submissions.c.team_key)
        )
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def owe(
        self,
        kind: OutboxKind,
        pk: int,
        *,
        now: datetime,
        not_before: datetime | None = None,
        receipt: str | None = None,
    ) -> None:
        """Put something into the outbox; there is one open row per submission and kind, and a delete takes the newest receipt."""
        values = {"not_before": not_before or now, "receipt": receipt, "tries": 0, "created_at": now}
        self._put(outbox, {"kind": kind, "submission": pk, "done_at": None}, **values)

    def owed(self, kind: OutboxKind | None = None, pk: int | None = None) -> list[Owed]:
        """Return what is still owed, the earliest due first."""
        query = sa.select(outbox).where(outbox.c.done_at.is_(None)).order_by(outbox.c.not_before, outbox.c.id)
        if kind is not None:
            query = query.where(outbox.c.kind == kind)
        if pk is not None:
            query = query.where(outbox.c.submission == pk)
        return self._all(Owed, query)

    def messaged_at(self, pk: int) -> datetime | None:
        """Return when a message about a submission last came; None if only the listing has shown it."""
        query = sa.select(sa.func.max(outbox.c.created_at, type_=Instant())).where(
            outbox.c.kind == OutboxKind.DELETE, outbox.c.submission == pk
        )
        latest: datetime | None = self._connection.execute(query).scalar()
        return latest

    def sending(self, owed: int, *, now: datetime) -> None:
        """Record that the first byte is about to be sent."""
        self._connection.execute(outbox.update().where(outbox.c.id == owed).values(sent_at=now))

    def settled(self, owed: int, *, now: datetime) -> None:
        """Record that EvalAI has it."""
        self._connection.execute(outbox.update().where(outbox.c.id == owed).values(done_at=now))

    def settle_all(self, kind: OutboxKind, pk: int, *, now: datetime) -> None:
        """Close all open rows of this kind, because they are no longer wanted."""
        self._connection.execute(
            outbox.update()
            .where(outbox.c.kind == kind, outbox.c.submission == pk, outbox.c.done_at.is_(None))
            .values(done_at=now)
        )

    def postpone(self, owed: int, *, not_before: datetime) -> None:
        """Count a failed try, and set the time of the next one."""
        self._connection.execute(
            outbox.update().where(outbox.c.id == owed).values(not_before=not_before, tries=outbox.c.tries + 1)
        )
