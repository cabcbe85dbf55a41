"""Alerts: tell the organizer, once, what needs a person.

An alert is raised under a key, and as long as it is raised it is logged and sent only once. It appears in the log, in `status`, and at a
Slack-compatible webhook.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

import requests

from scoring.errors import InfrastructureError, NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.evalai import Retry
from worker.runtime import Act, Runner, UnrecordedAct
from worker.runtime.user_agent import USER_AGENT
from worker.state import Alert, Transaction, alert_code

TIMEOUT_S = (5.0, 10.0)  # for connecting and for each read
GIVEN_UP_S = 20.0  # in total
ANSWER_SHOWN = 100  # characters of the webhook's response
# How long a failure that is not the disk's must last before it is reported: a lock may be released by then.
PATIENCE = timedelta(minutes=1)


class Alerting:
    """Logs alerts, and sends them to the webhook, one at a time; also reports a failing state, although that cannot be recorded.

    All alerts are logged here, no matter which part of the worker or which command raised them.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        wake, checkpoint = context.wake, context.checkpoint
        self._runner: Runner[Configuration] = Runner(
            "alerts", context.store, wake=wake, checkpoint=checkpoint
        )
        # A second runner: an alert that was sent may wait to be recorded, and the alert that the database fails must not queue behind it.
        self._emergency: Runner[Configuration] = Runner(
            "emergency", context.store, wake=wake, checkpoint=checkpoint
        )
        self._retry = Retry()
        self._logged: dict[str, datetime] = {}  # key of each active alert to the time when it was raised
        self._trouble: Trouble | None = None

    @property
    def busy(self) -> bool:
        """Whether an alert is being sent."""
        return self._runner.busy or self._emergency.busy

    @property
    def late(self) -> bool:
        """Whether an alert that was given up cannot be recorded as such."""
        return self._runner.late

    def step(self, now: datetime) -> bool:
        """Log what was raised or resolved; record that an alert was sent, or send the oldest that was not."""
        self._emergency.collect(now)
        moved = self._runner.collect(now) is not None
        with self._context.store.read() as tx:
            active = tx.alerts()
        self._log(active)
        unsent = [alert for alert in active if alert.sent_at is None]
        webhook = self._context.configuration.alerts.webhook
        if moved or self._runner.busy or not unsent or webhook is None or not self._retry.due(now):
            return moved
        act = SendAlert(self._context, self._retry, unsent[0])
        return self._runner.start(act, self._context.configuration, now)

    def _log(self, active: list[Alert]) -> None:
        """Log each alert once while it is active, and its end. A new process logs all active alerts once more."""
        log = self._context.log
        for alert in active:
            if self._logged.get(alert.key) != alert.raised_at:
                log.warning(alert.text, event_key=alert.code, alert=alert.key)
        raised = {alert.key: alert.raised_at for alert in active}
        for key in self._logged.keys() - raised.keys():
            log.info("Alert cleared.", event_key="alert.resolved", alert=key)
        self._logged = raised

    def emergency(self, error: NeucoError, now: datetime) -> None:
        """Report once that the state itself fails and cannot record this; :meth:`calm` ends the failure."""
        self._emergency.collect(now)
        trouble = self._trouble = self._trouble or Trouble(since=now)
        passes = not error.code.startswith("disk.") and now - trouble.since < PATIENCE
        if passes or trouble.reported == error.code or self._emergency.busy:
            return
        configuration = self._context.configuration
        if configuration.alerts.webhook is not None and self._retry.due(now):
            self._emergency.start(TellTrouble(self._context, self._retry, trouble, error), configuration, now)

    def calm(self) -> None:
        """Note that the state can be written again."""
        self._trouble = None


@dataclass(kw_only=True)
class Trouble:
    """A period in which the state fails.

    Attributes:
        since: When it began.
        reported: Code of the error that was already sent to the webhook.
    """

    since: datetime
    reported: str | None = None


class SendAlert(Act[Configuration, None]):
    """Send an alert to the webhook.

    Args:
        context: The worker's surroundings.
        retry: Back-off of the webhook.
        alert: The alert to send.
    """

    name = "alert"
    what: ClassVar[str] = "A call to the alert webhook"
    time_out_s = GIVEN_UP_S

    def __init__(self, context: Context, retry: Retry, alert: Alert) -> None:
        self._context = context
        self._retry = retry
        self._alert = alert

    def perform(self, resource: Configuration) -> None:
        """Post the alert."""
        send(resource, self._alert.text, self._alert.code)

    def outcome(self, tx: Transaction, result: None, now: datetime) -> None:
        """Record that it was sent."""
        tx.alert_sent(self._alert, now=now)

    def recorded(self, result: None, now: datetime) -> None:
        """Note that the webhook works."""
        self._retry.clear()

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Leave the alert unsent."""

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Schedule the next try."""
        defer(self._context, self._retry, error, now)


class TellTrouble(UnrecordedAct[Configuration, None]):
    """Tell the webhook that the state itself fails.

    Args:
        context: The worker's surroundings.
        retry: Back-off of the webhook.
        trouble: The failure's beginning, and what was already sent about it.
        error: The error.
    """

    name = "emergency"
    what: ClassVar[str] = "A call to the alert webhook"
    time_out_s = GIVEN_UP_S

    def __init__(self, context: Context, retry: Retry, trouble: Trouble, error: NeucoError) -> None:
        self._context = context
        self._retry = retry
        self._trouble = trouble
        self._error = error

    def perform(self, resource: Configuration) -> None:
        """Post the error."""
        send(resource, self._error.message, alert_code(self._error.code))

    def recorded(self, result: None, now: datetime) -> None:
        """Note that it was sent; if the failure has ended meanwhile, a later one is reported again."""
        self._retry.clear()
        self._trouble.reported = self._error.code

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Schedule the next try."""
        defer(self._context, self._retry, error, now)


def defer(context: Context, retry: Retry, error: NeucoError, now: datetime) -> None:
    """Schedule the webhook's next try; only the log can report that the webhook fails."""
    retry.failed(now, again_at=context.retry_at(now, retry.tries))
    context.log.warning(error.sentence, event_key=error.code)


def send(configuration: Configuration, text: str, code: str) -> str:
    """Post one alert as Slack-compatible JSON that names its challenge; return the webhook's response.

    Raises:
        OrganizerError: If the webhook's address cannot be read.
        InfrastructureError: If it did not arrive. The address, itself a secret, is in no message.
    """
    url = configuration.secret(configuration.alerts.webhook or "", "alerts.webhook")
    try:
        answer = requests.post(
            url.get_secret_value(),
            json={"text": f"[{configuration.challenge.title}] {text} ({code})"},
            headers={"User-Agent": USER_AGENT},
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise InfrastructureError(
            f"The alert webhook cannot be reached ({type(error).__name__}).",
            cure="Check alerts.webhook, and whether a firewall blocks connections to it.",
            code="alerts.unreachable",
        ) from None
    if not 200 <= answer.status_code < 300:
        raise InfrastructureError(
            f"The alert webhook answered {answer.status_code}.",
            cure="Check alerts.webhook. If the address was revoked, create a new webhook, store its address, and restart the worker.",
            code="alerts.refused",
        )
    return f"{answer.status_code} {answer.text[:ANSWER_SHOWN]}".strip()
