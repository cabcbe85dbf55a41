"""The timetable: which job is due when, under any clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.worker.harness.harness import Harness
from worker.challenge.configuration import load
from worker.daemon.worker import intervals_s
from worker.runtime import Job, Timetable

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def made(**intervals_s: float) -> Timetable:
    """Make a timetable of some jobs that were all just done."""
    timetable = Timetable({Job(name): interval_s for name, interval_s in intervals_s.items()})
    for name in intervals_s:
        timetable.done(Job(name), NOW)
    return timetable


def test_every_job_has_an_interval(harness: Harness) -> None:
    """The table is complete, and at the start every job is due."""
    table = intervals_s(load(harness.path))
    assert set(table) == set(Job)
    assert (table[Job.POLL], table[Job.RECONCILE]) == (2, 20)
    timetable = Timetable(table)
    assert all(timetable.due(job, NOW) for job in Job)
    assert timetable.next_at(NOW) is None


def test_a_job_is_due_an_interval_after_it_was_done() -> None:
    """It stays due until it is done, and then, even if a machine was suspended for a day, is due once."""
    timetable = made(poll=10)
    assert not timetable.due(Job.POLL, NOW)
    assert not timetable.due(Job.POLL, NOW + 9 * SECOND)
    assert timetable.due(Job.POLL, NOW + 10 * SECOND)
    assert timetable.due(Job.POLL, NOW + DAY)
    timetable.done(Job.POLL, NOW + DAY)
    assert not timetable.due(Job.POLL, NOW + DAY + 9 * SECOND)
    assert timetable.next_at(NOW + DAY) == NOW + DAY + 10 * SECOND


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    """A job that was done at a future time is due, once."""
    timetable = made(poll=10, reconcile=300)
    earlier = NOW - DAY
    assert timetable.due(Job.POLL, earlier)
    assert timetable.due(Job.RECONCILE, earlier)
    timetable.done(Job.POLL, earlier)
    assert not timetable.due(Job.POLL, earlier + SECOND)
    assert timetable.due(Job.POLL, earlier + 10 * SECOND)
    assert timetable.next_at(earlier) == earlier + 10 * SECOND


def test_the_loop_is_told_when_the_next_job_falls_due() -> None:
    """A job that is due already does not count, because it may have to wait for something else."""
    timetable = made(poll=10, reconcile=300)
    assert timetable.next_at(NOW) == NOW + 10 * SECOND
    assert timetable.next_at(NOW + 20 * SECOND) == NOW + 300 * SECOND
    assert timetable.next_at(NOW + HOUR) is None


def test_without_an_interval_a_job_is_due_whenever_somebody_looks() -> None:
    """An interval of 0 is always due, although APScheduler would take it for a second."""
    timetable = made(poll=0)
    assert timetable.due(Job.POLL, NOW + timedelta(milliseconds=1))


def test_other_intervals_count_from_what_was_done() -> None:
    """A reload changes the intervals without making every job due at once; a job that is asked for is due."""
    timetable = made(poll=10, reconcile=300)
    timetable.change({Job.POLL: 100, Job.RECONCILE: 20})
    assert not timetable.due(Job.POLL, NOW + 99 * SECOND)
    assert timetable.due(Job.RECONCILE, NOW + 20 * SECOND)
    timetable.ask(Job.POLL)
    assert timetable.due(Job.POLL, NOW)
    assert timetable.done_at(Job.POLL) is None
