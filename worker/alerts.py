"""Alerts: telling the organizer what needs a person, once.

An alert is raised with a key; while it is raised it is told once. It goes to the log, to `status`, and to a Slack-compatible webhook.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import requests

from scoring.errors import InfrastructureError, NeucoError
from worker.context import Context
from worker.lanes import Lane
from worker.sharing import COURIER
from worker.state import Alert
from worker.user_agent import USER_AGENT

TIMEOUT_S = (5.0, 10.0)


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

    @property
    def busy(self) -> bool:
        """Whether an alert is on its way."""
        return self._lane.busy

    def step(self, now: datetime) -> bool:
        """Send the next alert, or take in that one was sent."""
        if self._lane.collect(now):
            return True
        reference = self._context.configuration.alerts.webhook
        if reference is None or self._lane.busy or not self._context.sharing.leads(COURIER, now):
            return False
        if self._not_before is not None and now < self._not_before <= now + timedelta(seconds=120):
            return False
        with self._context.store.read() as tx:
            unsent = tx.alerts(unsent_only=True)
        if not unsent:
            return False
        alert = unsent[0]
        url = self._context.configuration.secret(reference, "alerts.webhook").get_secret_value()
        title = self._context.configuration.challenge.title

        def done(_: object, at: datetime) -> None:
            self._tries = 0
            with self._context.store.write() as tx:
                tx.alert_sent(alert.key, now=at)

        def failed(error: NeucoError, at: datetime) -> None:
            self._not_before = self._context.retry_at(at, self._tries)
            self._tries += 1
            self._context.log.warning(error.sentence, event_key=error.code)

        self._lane.start(lambda: send(url, title, alert), done=done, failed=failed)
        return True


def send(url: str, title: str, alert: Alert) -> None:
    """Post one alert as Slack-compatible JSON.

    Raises:
        InfrastructureError: If it did not arrive. The URL, itself a secret, is in no message.
    """
    try:
        answer = requests.post(
            url,
            json={"text": f"[{title}] {alert.text} ({alert.code})"},
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
