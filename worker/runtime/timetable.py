"""The timetable: the periodic jobs, and when each is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum


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
        intervals: Time between two runs of each job.
    """

    def __init__(self, intervals: Mapping[Job, timedelta]) -> None:
        self._done_at: dict[Job, datetime] = {}
        self.change(intervals)

    def change(self, intervals: Mapping[Job, timedelta]) -> None:
        """Set other intervals, which count from when each job was last done."""
        self._intervals = intervals

    def done_at(self, job: Job) -> datetime | None:
        """Return when a job was last done; None if it was never done, or was requested since."""
        return self._done_at.get(job)

    def due(self, job: Job, now: datetime) -> bool:
        """Return whether a job is due."""
        done_at = self._done_at.get(job)
        return done_at is None or not done_at <= now < done_at + self._intervals[job]

    def done(self, job: Job, now: datetime) -> None:
        """Note that a job was done; until then it stays due."""
        self._done_at[job] = now

    def ask(self, job: Job) -> None:
        """Make a job due at once."""
        self._done_at.pop(job, None)
