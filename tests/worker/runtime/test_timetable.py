"""The timetable: which job is due when, under any clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from worker.runtime import Job, Timetable

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.mark.parametrize("done_at", [NOW, NOW + DAY, NOW - DAY], ids=["usual", "suspended", "set back"])
def test_a_job_is_due_once_an_interval_after_it_was_done(done_at: datetime) -> None:
    """Also after a suspended machine or a clock that was set back; a reload changes the intervals without making every job due."""
    timetable = Timetable({Job.POLL: 10 * SECOND, Job.RECONCILE: 300 * SECOND})
    assert timetable.due(Job.POLL, NOW)  # at the start
    timetable.done(Job.POLL, NOW)
    timetable.done(Job.RECONCILE, NOW)
    assert timetable.due(Job.POLL, done_at) is (done_at != NOW)
    timetable.done(Job.POLL, done_at)
    assert not timetable.due(Job.POLL, done_at + 9 * SECOND)
    assert timetable.due(Job.POLL, done_at + 10 * SECOND)
    timetable.change({Job.POLL: 100 * SECOND, Job.RECONCILE: 0 * SECOND})
    assert not timetable.due(Job.POLL, done_at + 99 * SECOND)
    assert timetable.due(Job.RECONCILE, NOW)
    timetable.ask(Job.POLL)
    assert timetable.due(Job.POLL, done_at)
