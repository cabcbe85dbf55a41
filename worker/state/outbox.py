"""The outbox: what is owed to EvalAI until EvalAI has it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from worker.state.columns import Instant
from worker.state.rows import Owed
from worker.state.schema import outbox
from worker.state.states import OutboxKind
from worker.state.table import Tables


class Outbox(Tables):
    """Methods for the outbox."""

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
        result = self._connection.execute(
            outbox.update()
            .where(outbox.c.kind == kind, outbox.c.submission == pk, outbox.c.done_at.is_(None))
            .values(values)
        )
        if result.rowcount == 0:
            self._connection.execute(outbox.insert().values(kind=kind, submission=pk, **values))

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
