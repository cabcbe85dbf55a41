"""What the parts of the worker share, among it which regular jobs are due; it is passed to each of them, and nothing is global."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import structlog

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup, open_phase, read_secret
from worker.challenge.signing import Signer
from worker.evalai import backoff
from worker.state import Store


@dataclass(frozen=True)
class Job:
    """A regular job.

    Attributes:
        name: What it does.
        every_s: Returns the seconds between two runs.
    """

    name: str
    every_s: Callable[[Configuration], float]


class Timetable:
    """Keeps a mark for each job that is due. At first every job is due; a marked job stays due until it is done.

    Who marks them decides when; nothing here knows a clock.

    Args:
        jobs: The jobs.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._due = set(jobs)
        self._done_at: dict[Job, datetime] = {}

    def due(self, job: Job) -> bool:
        """Return whether a job is due."""
        return job in self._due

    def mark(self, job: Job) -> None:
        """Mark a job as due; another thread may do so."""
        self._due.add(job)

    def done(self, job: Job, now: datetime) -> None:
        """Note that a job was done."""
        self._due.discard(job)
        self._done_at[job] = now

    def done_at(self, job: Job) -> datetime | None:
        """Return when a job was last done; None if it was never done, or was asked for since."""
        return self._done_at.get(job)

    def ask(self, job: Job) -> None:
        """Make a job due at once, as if it had never been done."""
        self._done_at.pop(job, None)
        self.mark(job)


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
