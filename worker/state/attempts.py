"""Attempts: every try to fetch or score a submission, with its outcome."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from worker.state.columns import Instant
from worker.state.rows import AttemptRow
from worker.state.schema import attempts, submissions
from worker.state.states import Attempt, Outcome
from worker.state.table import Tables


class Attempts(Tables):
    """Methods for attempts."""

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
        query = sa.select(attempts.c.submission).where(
            attempts.c.kind == kind, attempts.c.closed_at.is_(None)
        )
        return set(self._connection.execute(query).scalars())

    def attempts(self, *, pk: int | None = None, open_only: bool = False) -> list[AttemptRow]:
        """Return attempts, oldest first."""
        query = sa.select(attempts).order_by(attempts.c.id)
        if pk is not None:
            query = query.where(attempts.c.submission == pk)
        if open_only:
            query = query.where(attempts.c.closed_at.is_(None))
        return self._all(AttemptRow, query)

    def attempt_counts(self) -> list[tuple[str, str, int]]:
        """Return closed attempts as (kind, outcome, count)."""
        of = (attempts.c.kind, attempts.c.outcome)
        query = sa.select(*of, sa.func.count()).where(attempts.c.closed_at.is_not(None)).group_by(*of)
        return sorted(
            (str(kind), str(outcome), number) for kind, outcome, number in self._connection.execute(query)
        )

    def last_turns(self) -> dict[int, datetime]:
        """Return for each team when an evaluation of one of its submissions last began."""
        query = (
            sa.select(submissions.c.team_key, sa.func.max(attempts.c.opened_at, type_=Instant()))
            .join(submissions, submissions.c.pk == attempts.c.submission)
            .where(attempts.c.kind == Attempt.EVALUATE, submissions.c.team_key.is_not(None))
            .group_by(submissions.c.team_key)
        )
        return {row[0]: row[1] for row in self._connection.execute(query)}
