"""The outbox: what is owed to EvalAI until EvalAI has it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from worker.state import schema
from worker.state.columns import Instant
from worker.state.rows import Owed
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
        table = schema.outbox
        values = {"not_before": not_before or now, "receipt": receipt, "tries": 0, "created_at": now}
        result = self._connection.execute(
            table.update()
            .where(table.c.kind == kind, table.c.submission == pk, table.c.done_at.is_(None))
            .values(values)
        )
        if result.rowcount == 0:
            self._connection.execute(table.insert().values(kind=kind, submission=pk, **values))

    def owed(self, kind: OutboxKind | None = None, pk: int | None = None) -> list[Owed]:
        """Return what is still owed, the earliest due first."""
        table = schema.outbox
        query = sa.select(table).where(table.c.done_at.is_(None)).order_by(table.c.not_before, table.c.id)
        if kind is not None:
            query = query.where(table.c.kind == kind)
        if pk is not None:
            query = query.where(table.c.submission == pk)
        return self._all(Owed, query)

    def messaged_at(self, pk: int) -> datetime | None:
        """Return when a message about a submission last came; None if only the listing has shown it."""
        table = schema.outbox
        query = sa.select(sa.func.max(table.c.created_at, type_=Instant())).where(
            table.c.kind == OutboxKind.DELETE, table.c.submission == pk
        )
        found: datetime | None = self._connection.execute(query).scalar()
        return found

    def sending(self, owed: int, *, now: datetime) -> None:
        """Record that the first byte is about to be sent."""
        self._connection.execute(schema.outbox.update().where(schema.outbox.c.id == owed).values(sent_at=now))

    def settled(self, owed: int, *, now: datetime) -> None:
        """Record that EvalAI has it."""
        self._connection.execute(schema.outbox.update().where(schema.outbox.c.id == owed).values(done_at=now))

    def settle_all(self, kind: OutboxKind, pk: int, *, now: datetime) -> None:
        """Close all open rows of this kind, because they are no longer wanted."""
        table = schema.outbox
        self._connection.execute(
            table.update()
            .where(table.c.kind == kind, table.c.submission == pk, table.c.done_at.is_(None))
            .values(done_at=now)
        )

    def postpone(self, owed: int, *, not_before: datetime) -> None:
        """Count a failed try, and set the time of the next one."""
        table = schema.outbox
        self._connection.execute(
            table.update().where(table.c.id == owed).values(not_before=not_before, tries=table.c.tries + 1)
        )
