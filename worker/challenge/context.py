"""What the parts of the worker share; it is passed to each of them, and nothing is global."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import structlog

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup, open_phase, read_secret
from worker.challenge.signing import Signer
from worker.challenge.timetable import Timetable
from worker.evalai import backoff
from worker.state import Store


@dataclass(kw_only=True)
class Context:
    """The worker's surroundings.

    Attributes:
        configuration: As read at the start or at the last reload.
        store: Durable state.
        signer: The challenge's key.
        random: Source of jitter.
        wake: Asks for another step soon.
        checkpoint: Called before and after every external effect; tests kill the process there.
        timetable: Which regular jobs are due.
    """

    configuration: Configuration
    store: Store
    signer: Signer
    random: Random
    wake: Callable[[], None]
    timetable: Timetable
    checkpoint: Callable[[str], None] = lambda _: None
    log: Any = field(default_factory=lambda: structlog.get_logger("neuco_worker"))

    def phase(self, codename: str) -> PhaseSetup:
        """Return a configured phase as it is recorded now, with the secret as it is now.

        Raises:
            NeucoError: As :func:`worker.challenge.setups.open_phase`.
        """
        secret = read_secret(self.configuration)
        with self.store.read() as tx:
            return open_phase(tx, codename, secret)

    def retry_at(self, now: datetime, tries: int) -> datetime:
        """Return when to try again after a failure."""
        return now + backoff(tries, random=self.random)

    def report(self, key: str, error: NeucoError, *, now: datetime) -> None:
        """Tell the organizer of an error that is not a participant's; nothing is written if this was told already."""
        with self.store.read() as tx:
            known = any((alert.key, alert.text) == (key, error.message) for alert in tx.alerts())
        if not known:
            with self.store.write() as tx:
                tx.report(key, error, now=now)

    def resolve_alerts(self, *keys: str) -> None:
        """Resolve alerts, as far as they were raised."""
        with self.store.read() as tx:
            raised = [alert.key for alert in tx.alerts() if alert.key in keys]
        if raised:
            with self.store.write() as tx:
                for key in raised:
                    tx.resolve_alert(key)


def seconds(value: float) -> timedelta:
    """Turn seconds of the configuration into a time span."""
    return timedelta(seconds=value)
