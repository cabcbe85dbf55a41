"""Beats: at once when something happens, one at a time, and none after the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from apscheduler.executors.base import BaseExecutor
from apscheduler.triggers.interval import IntervalTrigger

from worker.beats import Beats

NEVER_S = 3600.0


class Heart:
    """Counts beats and does something at each of them.

    Args:
        at: What to do at the beats, in order; after the last of them nothing is wanted any more.
    """

    def __init__(self, *at: Callable[[], None]) -> None:
        self.wake, self.stop = threading.Event(), threading.Event()
        self.beats = 0
        self.at_once = 0  # beats that go on
        self.most_at_once = 0
        self.busy = False
        self._at = at

    def beat(self) -> None:
        """Beat once."""
        self.wake.clear()
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        self.beats += 1
        try:
            self._at[self.beats - 1]()
        finally:
            self.at_once -= 1
        if self.beats == len(self._at):
            self.stop.set()
            self.wake.set()

    def run(self, *, busy_every_s: float = NEVER_S, every_s: float = NEVER_S) -> None:
        """Beat until the end."""
        Beats(
            beat=self.beat,
            wake=self.wake,
            stop=self.stop,
            busy=lambda: self.busy,
            every_s=every_s,
            busy_every_s=busy_every_s,
        ).run()


def nothing() -> None:
    """Do nothing."""


@pytest.mark.timeout(200)
def test_what_happens_between_two_beats_wakes_the_loop() -> None:
    """An outcome of a thread is looked at when it is there, not an hour later."""
    heart = Heart(lambda: threading.Timer(0.2, heart.wake.set).start(), nothing)
    heart.run()
    assert heart.beats == 2


@pytest.mark.timeout(200)
def test_what_happens_during_a_beat_is_not_slept_through() -> None:
    """It came too late for this beat's look at things; the next beat follows at once."""

    def during() -> None:
        heart.wake.set()
        threading.Event().wait(0.3)  # others have time to take notice, and must not forget it

    heart = Heart(*[during] * 5, nothing)
    heart.run()
    assert heart.beats == 6
    assert heart.most_at_once == 1


@pytest.mark.timeout(200)
def test_a_beat_that_the_scheduler_leaves_out_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still count the last beat as going on when the next one is asked for."""
    put_away = BaseExecutor._run_job_success

    def slowly(executor: BaseExecutor, *arguments: object) -> None:
        threading.Event().wait(0.05)
        put_away(executor, *arguments)

    monkeypatch.setattr(BaseExecutor, "_run_job_success", slowly)
    heart = Heart(*[lambda: heart.wake.set()] * 5, nothing)
    heart.run()
    assert heart.beats == 6


@pytest.mark.timeout(200)
def test_a_clock_that_is_set_back_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler puts the next beat off by as much; it comes in its time all the same."""
    hour = timedelta(hours=1)
    monkeypatch.setattr(IntervalTrigger, "get_next_fire_time", lambda _, __, now: now + hour)
    heart = Heart(nothing, nothing, nothing)
    heart.run(every_s=0.2)
    assert heart.beats == 3


@pytest.mark.timeout(200)
def test_while_a_child_runs_beats_come_more_often() -> None:
    """Nothing wakes the loop, but the child's memory must be looked at."""
    heart = Heart(nothing, nothing, nothing)
    heart.busy = True
    heart.run(busy_every_s=0.05)
    assert heart.beats == 3


@pytest.mark.timeout(200)
def test_a_beat_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    """A defect in one beat is told to the log, and the next one comes in its time."""

    def fail() -> None:
        raise RuntimeError("a defect")

    heart = Heart(fail, nothing)
    heart.run(every_s=0.2)
    assert heart.beats == 2
    assert "a defect" in caplog.text


@pytest.mark.timeout(200)
def test_it_returns_when_the_last_beat_has_ended() -> None:
    """Whoever stops it may close what the beats use."""
    ended = []

    def last() -> None:
        heart.stop.set()
        heart.wake.set()
        threading.Event().wait(0.3)
        ended.append(True)

    heart = Heart(last)
    heart.run()
    assert ended == [True]
    heart.wake.set()
    threading.Event().wait(0.3)
    assert heart.beats == 1
