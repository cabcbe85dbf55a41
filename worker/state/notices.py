"""Alerts, the audit trail, and named facts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from worker.state.alert_codes import alert_code
from worker.state.rows import Alert, AuditStep
from worker.state.schema import alerts, audit, facts
from worker.state.table import Tables

RESTORED = "restored_from"  # set while the state comes from a backup: the time until which it is complete
ATTESTED = "promised_at"  # the latest time on any attestation
REVEALED = "revealed_at"  # when something was last revealed
LOG_UNSEEN = "log_unseen"  # set while a restored state may lack lines of the public log of receipts


class Notices(Tables):
    """Methods for alerts, the audit trail and facts."""

    def raise_alert(self, key: str, code: str, text: str, *, now: datetime) -> None:
        """Raise an alert about something that needs a person, under a code that the runbook explains."""
        code = alert_code(code)
        row = self._connection.execute(sa.select(alerts).where(alerts.c.key == key)).first()
        if row is None:
            self._connection.execute(
                alerts.insert().values(key=key, code=code, text=text, raised_at=now, seen_at=now, count=1)
            )
            return
        values: dict[str, Any] = {"code": code, "text": text, "seen_at": now, "count": alerts.c["count"] + 1}
        if row.resolved_at is not None:
            values |= {"raised_at": now, "sent_at": None, "resolved_at": None, "count": 1}
        self._connection.execute(alerts.update().where(alerts.c.key == key).values(values))

    def resolve_alert(self, key: str, *, now: datetime) -> None:
        """Resolve an alert."""
        self._connection.execute(
            alerts.update().where(alerts.c.key == key, alerts.c.resolved_at.is_(None)).values(resolved_at=now)
        )

    def alerts(self) -> list[Alert]:
        """Return unresolved alerts, the oldest first."""
        return self._all(
            Alert, sa.select(alerts).where(alerts.c.resolved_at.is_(None)).order_by(alerts.c.raised_at)
        )

    def alert_sent(self, alert: Alert, *, now: datetime) -> None:
        """Record that the organizer was told, unless the alert was resolved and raised again meanwhile."""
        same = (alerts.c.key == alert.key) & (alerts.c.raised_at == alert.raised_at)
        self._connection.execute(alerts.update().where(same).values(sent_at=now))

    def log(
        self, action: str, *, actor: str, now: datetime, submission: int | None = None, **detail: Any
    ) -> None:
        """Append to the audit trail."""
        self._connection.execute(
            audit.insert().values(at=now, actor=actor, action=action, submission=submission, detail=detail)
        )

    def trail(self) -> list[AuditStep]:
        """Return the audit trail, oldest first."""
        return self._all(AuditStep, sa.select(audit).order_by(audit.c.id))

    def fact(self, name: str) -> str | None:
        """Return a named fact."""
        return self._connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar()

    def set_fact(self, name: str, value: str | None) -> None:
        """Set or remove a named fact."""
        self._connection.execute(facts.delete().where(facts.c.name == name))
        if value is not None:
            self._connection.execute(facts.insert().values(name=name, value=value))

    def attestation_time(self, now: datetime) -> datetime:
        """Return the time to write on an attestation (a commitment, a receipt, a board, a reveal): later than on all earlier ones.

        Verifiers order attestations by these times, and a clock that is set back, or is behind another machine's, must not change the
        order.
        """
        last = self.fact(ATTESTED)
        at = now if last is None else max(now, datetime.fromisoformat(last) + timedelta(microseconds=1))
        self.set_fact(ATTESTED, at.isoformat())
        return at
