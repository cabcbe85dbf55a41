"""The timetable: which job is due when, under any clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from worker.runtime import Job, Timetable

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.fixture
def timetable() -> Timetable:
    """Two jobs that were just done."""
    timetable = Timetable({Job.POLL: 10 * SECOND, Job.RECONCILE: 300 * SECOND})
    assert timetable.due(Job.POLL, NOW)  # at the start every job is due
    timetable.done(Job.POLL, NOW)
    timetable.done(Job.RECONCILE, NOW)
    return timetable


def test_a_job_is_due_an_interval_after_it_was_done(timetable: Timetable) -> None:
    """It stays due until it is done, and then, even if a machine was suspended for a day, is due once."""
    assert not timetable.due(Job.POLL, NOW + 9 * SECOND)
    assert timetable.due(Job.POLL, NOW + 10 * SECOND)
    assert timetable.due(Job.POLL, NOW + DAY)
    timetable.done(Job.POLL, NOW + DAY)
    assert not timetable.due(Job.POLL, NOW + DAY + 9 * SECOND)


def test_a_clock_that_is_set_back_stops_nothing(timetable: Timetable) -> None:
    """A job that was done at a future time is due, once."""
    earlier = NOW - DAY
    assert timetable.due(Job.POLL, earlier)
    timetable.done(Job.POLL, earlier)
    assert not timetable.due(Job.POLL, earlier + SECOND)
    assert timetable.due(Job.POLL, earlier + 10 * SECOND)


def test_other_intervals_count_from_what_was_done(timetable: Timetable) -> None:
    """A reload changes the intervals without making every job due at once; a job that is asked for is due; an interval may be 0."""
    timetable.change({Job.POLL: 100 * SECOND, Job.RECONCILE: 0 * SECOND})
    assert not timetable.due(Job.POLL, NOW + 99 * SECOND)
    assert timetable.due(Job.RECONCILE, NOW)
    timetable.ask(Job.POLL)
    assert timetable.due(Job.POLL, NOW)
    assert timetable.done_at(Job.POLL) is None
