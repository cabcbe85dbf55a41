"""Beats: one function again and again, at regular times and as soon as something wakes it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.schedulers.background import BackgroundScheduler

BEAT_S = 1.0
BUSY_BEAT_S = 0.25  # while a child runs: its memory is measured at every beat


@dataclass(kw_only=True)
class Beats:
    """A clock for a loop that must neither sleep through what happens nor beat twice at a time.

    APScheduler gives the beats, one at a time; after a stall (a suspended machine) there is one, not all that were missed. It goes by the
    system's clock; when that is set back, the beats that it puts off come all the same.

    Attributes:
        beat: What to do; it clears ``wake`` before it looks at things.
        wake: Set by whoever has something to look at.
        stop: Set when no beat is wanted any more.
        busy: Tells whether beats should come more often.
        every_s: Seconds between beats.
        busy_every_s: The same while busy.
    """

    beat: Callable[[], None]
    wake: threading.Event
    stop: threading.Event
    busy: Callable[[], bool]
    every_s: float = BEAT_S
    busy_every_s: float = BUSY_BEAT_S
    _beating: threading.Lock = field(default_factory=threading.Lock, init=False)
    _began_s: float = field(default=0.0, init=False)  # the last beat, on a clock that nobody sets

    def run(self, *, began: Callable[[], None] = lambda: None) -> None:
        """Beat until ``stop`` is set, and return when the last beat has ended.

        Args:
            began: Called once, when beats come.
        """
        scheduler = BackgroundScheduler(timezone=UTC)
        # It leaves out a beat that falls due before it has put the one before away; what asked for that beat is still to be looked at.
        scheduler.add_listener(lambda _: self.wake.set(), EVENT_JOB_MAX_INSTANCES)
        job = scheduler.add_job(
            self._beat,
            "interval",
            seconds=self.every_s,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._began_s = time.monotonic()
        scheduler.start()
        began()
        while not self.stop.is_set():
            self.wake.wait(timeout=self.busy_every_s if self.busy() else self.every_s)
            # Asked for while another goes on, a beat would be left out.
            with self._beating:
                overdue = time.monotonic() - self._began_s > 1.5 * self.every_s
                if (self.wake.is_set() or self.busy() or overdue) and not self.stop.is_set():
                    self.wake.clear()
                    with contextlib.suppress(LookupError):
                        job.modify(next_run_time=datetime.now(UTC))
        scheduler.shutdown(wait=True)

    def _beat(self) -> None:
        with self._beating:
            self._began_s = time.monotonic()
            self.beat()
