"""Alerts: tell the organizer, once, what needs a person.

An alert is raised under a key, and as long as it is raised it is logged and sent only once. It appears in the log, in `status`, and at a
Slack-compatible webhook, to which one that comes and goes is sent at most once an hour.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, cast

from scoring.errors import InfrastructureError, NeucoError
from scoring.printable import name_some
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.evalai import Retry
from worker.runtime.acts import Runner, Start, UnrecordedAct
from worker.runtime.http import HttpSession
from worker.state import Alert, Transaction, alert_code

TIMEOUT_S = (5.0, 10.0)  # for connecting and for each read
TEXTS = 3  # in a message, of alerts with the same code; the others are counted
ANSWER_SHOWN = 100  # characters of the webhook's response
# How long a failure that is not the disk's must last before it is reported: a lock may be released by then.
TOLERATED = timedelta(minutes=1)
STATE = "state"  # as the key of an alert about the state itself
AGAIN_AFTER = timedelta(hours=1)  # between two messages about one alert


class Alerting:
    """Logs alerts, and sends them to the webhook, one at a time; also reports a failing state, although that cannot be recorded.

    All alerts are logged here, no matter which part of the worker or which command raised them.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._runner: Runner[Configuration] = Runner(
            "alerts", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._retry = Retry()
        self._logged: dict[str, datetime] = {}  # key of each active alert to the time when it was raised
        self._sent: list[Alert] = []  # while that cannot be recorded
        self._told_at: dict[tuple[str, str], datetime] = {}  # key and code to the time of the last message
        self._failing_since: datetime | None = None  # the state itself

    @property
    def busy(self) -> bool:
        """Whether an alert is being sent."""
        return self._runner.busy

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Log what was raised or resolved; yield what records that alerts were sent or are over, or sends the oldest with those like it."""
        active = tx.alerts()
        over = [alert for alert in active if alert.ends_at is not None and alert.ends_at <= now]
        if self._sent or over:
            yield partial(self._record, over, now)
            return
        self._log(active)
        rests = partial(self._rests, now=now)
        unsent = [alert for alert in active if alert.sent_at is None and not rests(alert.key, alert.code)]
        if unsent:
            code = unsent[0].code
            alike = [alert for alert in unsent if alert.code == code]
            text = name_some([alert.text for alert in alike], TEXTS, "\n")
            yield partial(
                self._send, SendAlert(text=text, code=code, sent=partial(self._note, alike, now)), now
            )

    def _note(self, sent: list[Alert], now: datetime) -> None:
        self._sent += sent
        self._told_at |= {(alert.key, alert.code): now for alert in sent}

    def _rests(self, key: str, code: str, now: datetime) -> bool:
        """Return whether a message was about this alert a while ago; one in the future means that the clock was set back."""
        told_at = self._told_at.get((key, code))
        return told_at is not None and told_at <= now < told_at + AGAIN_AFTER

    def _record(self, over: list[Alert], now: datetime) -> bool:
        """Record that alerts were sent, and end those that are over."""
        with self._context.store.write() as tx:
            for alert in self._sent:
                tx.alert_sent(alert, now=now)
            for alert in over:
                tx.resolve_alert(alert.key)
        self._sent.clear()
        return True

    def state_failed(self, error: NeucoError, now: datetime) -> None:
        """Report once that the state itself fails and cannot record this; :meth:`state_written` ends the failure."""
        self.collect(now)
        since = self._failing_since = self._failing_since or now
        passes = not error.code.startswith("disk.") and now - since < TOLERATED
        code = alert_code(error.code)
        told_at = self._told_at.get((STATE, code))
        is_told = told_at is not None and since <= told_at <= now
        if not (passes or is_told or self._rests(STATE, code, now)):
            sent = partial(self._told_at.update, {(STATE, code): now})
            self._send(SendAlert(text=error.message, code=code, sent=sent), now)

    def state_written(self) -> None:
        """Note that the state can be written again; a later failure is reported again."""
        self._failing_since = None

    def _send(self, act: SendAlert, now: datetime) -> None:
        """Send an alert, if there is a webhook and its next try is due."""
        configuration = self._context.configuration
        if configuration.alerts.webhook is not None and not self._runner.busy and self._retry.due(now):
            self._runner.start(act, configuration, now)

    def collect(self, now: datetime) -> None:
        """Note in memory how an alert's sending ended; only the log can report that the webhook fails."""
        ended = self._runner.collect(now)
        if ended is None:
            return
        if ended.error is None:
            self._retry = Retry()
            cast("SendAlert", ended.act).sent()
        else:
            self._retry.failed(now, again_at=self._context.retry_at(now, self._retry.tries))
            self._context.log.warning(ended.error.sentence, event_key=ended.error.code)

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


@dataclass(kw_only=True, eq=False, repr=False)
class SendAlert(UnrecordedAct[Configuration, None]):
    """Send alerts with the same code to the webhook, or one even while the state fails.

    Attributes:
        text: What it says.
        code: Its code.
        sent: Notes in memory that it was sent.
    """

    name = "alert"
    what: ClassVar[str] = "A call to the alert webhook"
    time_out_s = 20.0  # in total; connecting and each read have time limits of their own

    text: str
    code: str
    sent: Callable[[], None]

    def perform(self, resource: Configuration) -> None:
        """Post it."""
        send(resource, self.text, self.code)


def inert(text: str) -> str:
    """Return a text in which Slack and Mattermost see no mention and no named link: participants and committers write parts of alerts."""
    harmless = re.sub(r"\B@", "@\u200b", html.escape(text, quote=False))  # neuco-worker@NAME stays as it is
    return harmless.replace("](", "]\u200b(")


def send(configuration: Configuration, text: str, code: str) -> str:
    """Post one alert as Slack-compatible JSON that names its challenge; return the webhook's response.

    Raises:
        OrganizerError: If the webhook's address cannot be read.
        InfrastructureError: If it did not arrive. The address, itself a secret, is in no message.
    """
    url = configuration.secret(configuration.alerts.webhook or "", "alerts.webhook")
    try:
        with HttpSession() as session:
            answer = session.post(
                url.get_secret_value(),
                json={"text": inert(f"[{configuration.challenge.title}] {text} ({code})")},
                timeout=TIMEOUT_S,
                allow_redirects=False,
            )
    except OSError as error:  # the library's own errors, and those of files that it opens
        raise InfrastructureError(
            f"The alert webhook cannot be reached ({type(error).__name__}).",
            hint="Check alerts.webhook, and whether a firewall blocks connections to it.",
            code="alerts.unreachable",
        ) from None
    if not 200 <= answer.status_code < 300:
        raise InfrastructureError(
            f"The alert webhook answered {answer.status_code}.",
            hint="Check alerts.webhook. If the address was revoked, create a new webhook, store its address, and restart the worker.",
            code="alerts.refused",
        )
    return f"{answer.status_code} {answer.text[:ANSWER_SHOWN]}".strip()
