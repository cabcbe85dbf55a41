"""Alerts: what a person should know or do, each raised until it is resolved."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

import sqlalchemy as sa

from scoring.errors import NeucoError, OrganizerError
from worker.state.rows import Alert
from worker.state.schema import Tables, alerts

ALERT_CODES = frozenset(
    {
        "act.timed_out",
        "beacon.*",
        "board.folds_differ",
        "challenge.paused",
        "child.start",
        "clock.wrong",
        "disk.*",
        "download.broken",
        "download.host",
        "download.redirected",
        "engine.*",
        "evalai.challenge_differs",
        "evalai.email_unverified",
        "evalai.hosts_changed",
        "evalai.hosts_unknown",
        "evalai.metric_differs",
        "evalai.not_found",
        "evalai.not_permitted",
        "evalai.phase_unknown",
        "evalai.redirected",
        "evalai.rejected",
        "evalai.server_address",
        "evalai.split_unknown",
        "evalai.throttled",
        "evalai.token_form",
        "evalai.token_refused",
        "evalai.unintelligible",
        "evalai.unreachable",
        "evaluate.*",
        "facts.author_not_in_team",
        "facts.changed",
        "facts.number_used",
        "facts.other_challenge",
        "facts.phase_unconfigured",
        "facts.sender_unusual",
        "file.link_expired",
        "leaderboard.*",
        "leaderboard.overwritten",
        "leaderboard.rewritten",
        "library.*",
        "memory",
        "phase.end_moved",
        "phase.not_open",
        "phase.not_recorded",
        "phase.open",
        "phase.paused",
        "queue.foreign",
        "record.*",
        "reload.refused",
        "restore.answered_since",
        "secret.*",
        "state.*",
        "submission.answered_elsewhere",
        "submission.given_up",
        "submission.quota",
        "submission.set_back",
        "submission.timed_out",
        "submission.unreadable",
        "submission.waiting",
        "team.name_alike",
        "unexpected",
        "upload.unfinished",
    }
)
"""Codes, and families of codes whose errors say themselves what to do."""
ALERT_KEPT_FOR = timedelta(days=1)  # an alert about what has happened


def alert_code(code: str) -> str:
    """Return the code under which an error is reported: its own if the runbook explains it, else that of unexpected errors."""
    family = f"{code.partition('.')[0]}.*"
    return code if not ALERT_CODES.isdisjoint((code, family)) else "unexpected"


_ALERTS = sa.select(alerts).order_by(alerts.c.raised_at)


class Alerts(Tables):
    """Methods for alerts."""

    def raise_alert(self, key: str, code: str, text: str, *, now: datetime, happened: bool = False) -> None:
        """Raise an alert about something that needs a person.

        Args:
            key: What it is about. Whoever raises it there again only changes its text, unless that is about another event.
            code: One of :data:`ALERT_CODES`, which the runbook explains.
            text: What it says.
            now: The time.
            happened: Whether it is about an event, and ends a day after the last one; any other is resolved when its cause has gone.

        Raises:
            ValueError: If the runbook does not explain the code.
        """
        if alert_code(code) != code:
            raise ValueError(f"ALERT_CODES lacks {code}")
        values = {"code": code, "text": text, "ends_at": now + ALERT_KEPT_FOR if happened else None}
        if happened:  # another event is logged and sent, too
            self._connection.execute(alerts.delete().where(alerts.c.key == key, alerts.c.text != text))
        raised = self._connection.execute(alerts.update().where(alerts.c.key == key).values(values))
        if raised.rowcount == 0:
            self._connection.execute(alerts.insert().values(key=key, raised_at=now, **values))

    def set_alert(self, key: str, code: str, text: str | None, *, now: datetime) -> None:
        """Raise an alert as long as there is something to say, and resolve it otherwise."""
        if text is None:
            self.resolve_alert(key)
        else:
            self.raise_alert(key, code, text, now=now)

    def report(self, key: str, error: NeucoError, *, now: datetime) -> None:
        """Raise an alert about an error that is not a participant's; one for a person is sent even if another was sent under this key."""
        code = alert_code(error.code)
        if isinstance(error, OrganizerError):
            other = (alerts.c.key == key) & (alerts.c.code != code)
            self._connection.execute(alerts.update().where(other).values(sent_at=None))
        self.raise_alert(key, code, error.message, now=now)

    def resolve_alert(self, key: str) -> None:
        """Resolve an alert, if it was raised."""
        self._connection.execute(alerts.delete().where(alerts.c.key == key))

    def resolve_faults(self, step: str, families: Collection[str]) -> None:
        """Resolve the alerts about faults of a step that are not about one submission: their keys name a code of one of these families."""
        found = [alerts.c.key.like(f"{step}:{family}.%") for family in families]
        self._connection.execute(alerts.delete().where(sa.or_(*found)))

    def alerts(self) -> list[Alert]:
        """Return all alerts, the oldest first."""
        return self._all(Alert, _ALERTS)

    def alert_sent(self, alert: Alert, *, now: datetime) -> None:
        """Record that the organizer was told, unless the alert was resolved and raised again, or has another code meanwhile."""
        same = {"key": alert.key, "raised_at": alert.raised_at, "code": alert.code}
        self._connection.execute(alerts.update().filter_by(**same).values(sent_at=now))
