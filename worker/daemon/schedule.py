"""The schedule: APScheduler marks each regular job as due at its interval, and wakes the loop, which does the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from worker.challenge.context import Job, Timetable

JUMP = timedelta(seconds=2)
"""A difference between two clocks from which on one of them was set, or the machine slept."""


class Every(BaseTrigger):  # type: ignore[misc]
    """Fires at an interval from now on. It lists no missed run: after a year's jump of the clock, there would be millions.

    Args:
        interval: Time between two runs.
    """

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run."""
        return now + self._interval


class Schedule:
    """Marks the regular jobs in a thread of its own, until it is closed.

    Args:
        timetable: Where jobs are marked.
        wake: Called when a job has become due.
    """

    def __init__(self, timetable: Timetable, wake: Callable[[], None]) -> None:
        self._timetable = timetable
        self._wake = wake
        self._intervals: Mapping[Job, timedelta] = {}
        self._zero = datetime.min.replace(tzinfo=UTC)  # when the other clock showed zero
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": DebugExecutor()},  # runs a job in the scheduler's own thread
            job_defaults={"misfire_grace_time": None},
        )
        self._scheduler.start()

    def keep(self, intervals: Mapping[Job, timedelta], now: datetime, monotonic_s: float) -> bool:
        """Schedule the jobs again, and mark each, if an interval has changed, or the clock has jumped against one that nobody sets.

        Returns:
            Whether that was so.

        Args:
            intervals: Time between two runs of each job.
            now: The time.
            monotonic_s: Seconds of a clock that never jumps.
        """
        zero = now - timedelta(seconds=monotonic_s)
        if intervals == self._intervals and abs(zero - self._zero) < JUMP:
            return False
        self._intervals, self._zero = intervals, zero
        self._scheduler.remove_all_jobs()
        for job, interval in intervals.items():
            self._timetable.mark(job)
            self._scheduler.add_job(self._mark, Every(interval), [job], id=job.name)
        return True

    def close(self) -> None:
        """End the thread."""
        self._scheduler.shutdown()

    def _mark(self, job: Job) -> None:
        self._timetable.mark(job)
        self._wake()
