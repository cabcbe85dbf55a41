"""Alerts: telling the organizer what needs a person, once.

An alert is raised with a key; while it is raised it is told once. It goes to the log, to `status`, and to a Slack-compatible webhook.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import requests

from scoring.errors import InfrastructureError, NeucoError
from worker.context import Context
from worker.lanes import Lane
from worker.sharing import COURIER
from worker.user_agent import USER_AGENT

TIMEOUT_S = (5.0, 10.0)
PATIENCE = timedelta(minutes=1)  # with a state that fails for another reason than its disk: a lock passes


class Alerting:
    """Sends unsent alerts to the webhook, one at a time.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lane: Lane[Any] = Lane("alerts", context.wake)
        self._not_before: datetime | None = None
        self._tries = 0
        self._sent: dict[
            str, datetime
        ] = {}  # key to raised_at of what was sent and is not recorded as sent yet
        self._failing_since: datetime | None = None  # the state itself
        self._told: str | None = None  # the code that was sent of that

    @property
    def busy(self) -> bool:
        """Whether an alert is on its way."""
        return self._lane.busy

    def step(self, now: datetime) -> bool:
        """Send the next alert, or take in that one was sent."""
        if self._lane.collect(now):
            return True
        if not self._ready(now) or not self._context.sharing.leads(COURIER, now):
            return False
        with self._context.store.read() as tx:
            unsent = tx.alerts(unsent_only=True)
        if not unsent:
            return False
        if recorded := [alert for alert in unsent if self._sent.get(alert.key) == alert.raised_at]:
            with self._context.store.write() as tx:
                for alert in recorded:
                    tx.alert_sent(alert.key, now=now)
            return True
        alert = unsent[0]

        def sent() -> None:
            self._sent[alert.key] = alert.raised_at

        self._start(alert.code, alert.text, sent)
        return True

    def emergency(self, error: NeucoError, now: datetime) -> None:
        """Tell of what cannot be recorded because the state itself fails: once, until :meth:`calm`."""
        self._lane.collect(now)
        since = self._failing_since = self._failing_since or now
        passes = not error.code.startswith("disk.") and now - since < PATIENCE
        if passes or self._told == error.code or not self._ready(now):
            return

        def sent() -> None:
            if self._failing_since == since:  # else it has ended, and the next time is news
                self._told = error.code

        self._start(error.code, error.message, sent)

    def calm(self) -> None:
        """Take note that the state can be written to again."""
        self._failing_since = self._told = None

    def _ready(self, now: datetime) -> bool:
        """Tell whether there is a webhook, and it may be tried now."""
        if self._context.configuration.alerts.webhook is None or self._lane.busy:
            return False
        return self._not_before is None or not now < self._not_before <= now + timedelta(seconds=120)

    def _start(self, code: str, text: str, sent: Callable[[], None]) -> None:
        reference = self._context.configuration.alerts.webhook or ""
        url = self._context.configuration.secret(reference, "alerts.webhook").get_secret_value()
        title = self._context.configuration.challenge.title

        def done(_: object, __: datetime) -> None:
            self._tries = 0
            sent()

        def failed(error: NeucoError, at: datetime) -> None:
            self._not_before = self._context.retry_at(at, self._tries)
            self._tries += 1
            self._context.log.warning(error.sentence, event_key=error.code)

        self._lane.start(lambda: send(url, f"[{title}] {text} ({code})"), done=done, failed=failed)


def send(url: str, text: str) -> None:
    """Post one alert as Slack-compatible JSON.

    Raises:
        InfrastructureError: If it did not arrive. The URL, itself a secret, is in no message.
    """
    try:
        answer = requests.post(
            url,
            json={"text": text},
            headers={"User-Agent": USER_AGENT},
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise InfrastructureError(
            f"The alert webhook cannot be reached ({type(error).__name__}).", code="alerts.unreachable"
        ) from None
    if not 200 <= answer.status_code < 300:
        raise InfrastructureError(f"The alert webhook answered {answer.status_code}.", code="alerts.refused")
