"""The timetable: the periodic jobs, and when each is due.

APScheduler's scheduler reads the machine's clock itself, but a step gets the time as a parameter. Its triggers are functions of given
times, so they make up the table here, and the main loop asks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

LEAST_S = 1e-6
"""Used for an interval of 0, which APScheduler would take for a second."""


class Job(StrEnum):
    """A periodic job."""

    POLL = "poll"
    """Polling EvalAI's queue."""
    RECONCILE = "reconcile"
    """Comparing EvalAI's whole listing with the database."""
    HOSTS = "hosts"
    """Reading who the challenge's hosts are."""
    PUBLISH = "publish"
    """Publishing the boards."""
    HOUSEKEEPING = "housekeeping"
    """Removing old stored files."""


class Timetable:
    """Knows when each job was last done and when it is due next.

    At first every job is due. A job that was missed several times, for example while the machine slept, is due once. A time in the future
    means that the clock was set back, and the job is due.

    Args:
        intervals_s: Interval of each job in seconds.
    """

    def __init__(self, intervals_s: Mapping[Job, float]) -> None:
        self._done_at: dict[Job, datetime] = {}
        self.change(intervals_s)

    def change(self, intervals_s: Mapping[Job, float]) -> None:
        """Set other intervals, which count from when each job was last done."""
        # Imported here, because a child process imports this package and must not load what only the daemon needs.
        from apscheduler.triggers.interval import IntervalTrigger

        self._triggers = {
            job: IntervalTrigger(seconds=max(interval_s, LEAST_S), timezone=UTC)
            for job, interval_s in intervals_s.items()
        }

    def done_at(self, job: Job) -> datetime | None:
        """Return when a job was last done; None if it was never done, or was requested since."""
        return self._done_at.get(job)

    def due(self, job: Job, now: datetime) -> bool:
        """Return whether a job is due."""
        done_at = self._done_at.get(job)
        return done_at is None or not done_at <= now < self._again_at(job, done_at)

    def done(self, job: Job, now: datetime) -> None:
        """Note that a job was done; until then it stays due."""
        self._done_at[job] = now

    def ask(self, job: Job) -> None:
        """Make a job due at once."""
        self._done_at.pop(job, None)

    def next_at(self, now: datetime) -> datetime | None:
        """Return when the next job that is not due yet becomes due, None if there is none."""
        coming = [
            self._again_at(job, done_at) for job, done_at in self._done_at.items() if not self.due(job, now)
        ]
        return min(coming, default=None)

    def _again_at(self, job: Job, done_at: datetime) -> datetime:
        again_at: datetime = self._triggers[job].get_next_fire_time(done_at, done_at)
        return again_at
