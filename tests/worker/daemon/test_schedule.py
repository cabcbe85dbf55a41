"""The schedule of the regular jobs, under any clock."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.waiting import LIMIT_S
from worker.challenge.context import Job, Timetable
from worker.daemon.schedule import Every, Schedule
from worker.daemon.worker import JOBS

A, B = Job("a", lambda _: 0), Job("b", lambda _: 0)
NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
HOURLY = {A: HOUR, B: HOUR}


@pytest.fixture
def timetable() -> Timetable:
    """Nothing is due."""
    return Timetable(())


@pytest.fixture
def woken() -> threading.Event:
    """Set when a job has become due."""
    return threading.Event()


@pytest.fixture
def schedule(timetable: Timetable, woken: threading.Event) -> Iterator[Schedule]:
    """A schedule without jobs; its thread ends with it."""
    with closing(Schedule(timetable, woken.set)) as schedule:
        yield schedule
    assert "APScheduler" not in {thread.name for thread in threading.enumerate()}


def taken(timetable: Timetable) -> set[Job]:
    """Do what is due; return it."""
    due = {job for job in HOURLY if timetable.due(job)}
    for job in due:
        timetable.done(job, NOW)
    return due


def test_a_job_is_due_at_its_interval(
    schedule: Schedule, timetable: Timetable, woken: threading.Event
) -> None:
    """It is marked, and the loop is woken."""
    schedule.keep({A: SECOND / 10}, NOW, 0)
    for _ in range(3):
        assert woken.wait(LIMIT_S)
        assert timetable.due(A)
        woken.clear()


def test_a_reload_changes_the_jobs(schedule: Schedule, timetable: Timetable) -> None:
    """Jobs are added, removed and changed, and each that remains is due once; without a change, none is."""
    schedule.keep({A: HOUR}, NOW, 0)
    assert taken(timetable) == {A}
    for intervals in (HOURLY, {B: HOUR}, {B: SECOND * 7200}, {}):
        for due in (set(intervals), set[Job]()):
            schedule.keep(dict(intervals), NOW, 0)
            assert taken(timetable) == due


@pytest.mark.parametrize("days", [10, -10, 365, -365])
def test_a_clock_that_jumps_makes_each_job_due_once(
    schedule: Schedule, timetable: Timetable, days: int
) -> None:
    """The machine slept, or its clock was set; one that is set by less than a second changes nothing."""
    assert (schedule.keep(HOURLY, NOW, 100), taken(timetable)) == (True, {A, B})
    assert (schedule.keep(HOURLY, NOW + SECOND / 2, 101), taken(timetable)) == (False, set())
    assert (schedule.keep(HOURLY, NOW + 2 * SECOND + days * DAY, 102), taken(timetable)) == (True, {A, B})
    assert (schedule.keep(HOURLY, NOW + 3 * SECOND + days * DAY, 103), taken(timetable)) == (False, set())


@pytest.mark.parametrize("days", [10, 365])
def test_missed_runs_are_not_made_up_for(days: int) -> None:
    """APScheduler lists every run until the present before it combines them, so the run after a missed one is in the future."""
    assert Every(SECOND).get_next_fire_time(NOW - days * DAY, NOW) == NOW + SECOND


def test_every_regular_job_is_in_the_list() -> None:
    """One that is missing in worker/daemon/worker.py:JOBS would never be due."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("worker.")]
    defined = {value for names in modules for value in names.values() if isinstance(value, Job)}
    forgotten = sorted(job.name for job in defined.difference(JOBS))
    assert not forgotten, f"Add these jobs to worker/daemon/worker.py:JOBS: {', '.join(forgotten)}."
    assert defined.issuperset(JOBS)
