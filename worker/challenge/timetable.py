"""The timetable: which regular jobs are due. Who marks them decides when; nothing here knows a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from worker.challenge.configuration import Configuration


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
