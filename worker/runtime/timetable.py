"""The timetable: what is done again and again, and when it is due.

APScheduler's scheduler reads the machine's clock by itself, which a step under a handed-in clock may not. Its triggers are functions of
the times that they are given, so they hold the table here, and the loop asks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

LEAST_S = 1e-6
"""For an interval of 0, which APScheduler would take for a second."""


class Job(StrEnum):
    """What is done again and again."""

    POLL = "poll"
    """Looking at EvalAI's queue."""
    RECONCILE = "reconcile"
    """Comparing EvalAI's whole listing with what we know."""
    HOSTS = "hosts"
    """Reading who the challenge's hosts are."""
    PUBLISH = "publish"
    """Bringing the leaderboard's repository in step."""
    HOUSEKEEPING = "housekeeping"
    """Looking which stored files can go, or be compressed."""
    STANDBY = "standby"
    """Checking that a daemon that stands by could take over: its secret, token, signing key and disk."""


class Timetable:
    """Knows when each job was done last, and so when it is due again.

    At first every job is due. One that was missed, while the machine slept or something else took long, is due once. A time in the future
    is from before the clock was set back: the job is due.

    Args:
        intervals_s: Seconds from one time that a job is done to the next.
    """

    def __init__(self, intervals_s: Mapping[Job, float]) -> None:
        self._done_at: dict[Job, datetime] = {}
        self.change(intervals_s)

    def change(self, intervals_s: Mapping[Job, float]) -> None:
        """Take other intervals; they count from when each job was done last."""
        # Here, because a child imports this package and must not load what only the daemon needs.
        from apscheduler.triggers.interval import IntervalTrigger

        self._triggers = {
            job: IntervalTrigger(seconds=max(interval_s, LEAST_S), timezone=UTC)
            for job, interval_s in intervals_s.items()
        }

    def done_at(self, job: Job) -> datetime | None:
        """Return when a job was done last; None if it was asked for since, or never done."""
        return self._done_at.get(job)

    def due(self, job: Job, now: datetime) -> bool:
        """Return whether a job is due."""
        done_at = self._done_at.get(job)
        return done_at is None or not done_at <= now < self._again_at(job, done_at)

    def done(self, job: Job, now: datetime) -> None:
        """Take note that a job was done; until then it stays due."""
        self._done_at[job] = now

    def ask(self, job: Job) -> None:
        """Let a job be due at once."""
        self._done_at.pop(job, None)

    def next_at(self, now: datetime) -> datetime | None:
        """Return when the next job falls due that is not due yet, None if there is none."""
        coming = [
            self._again_at(job, done_at) for job, done_at in self._done_at.items() if not self.due(job, now)
        ]
        return min(coming, default=None)

    def _again_at(self, job: Job, done_at: datetime) -> datetime:
        again_at: datetime = self._triggers[job].get_next_fire_time(done_at, done_at)
        return again_at
