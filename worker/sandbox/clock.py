"""The sandbox's time, which is a parameter so that tests need not sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The sandbox's time source, by default the machine's: ``now`` for dates, ``monotonic`` for seconds that never jump."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic


class ManualClock:
    """A clock that only moves when it is advanced; safe to use from several threads."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, 12, tzinfo=UTC)
        self._elapsed_s = 0.0
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._elapsed_s += seconds

    def now(self) -> datetime:
        """Return the date and time that this clock shows."""
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        """Return the seconds that passed since the start."""
        return self._elapsed_s

    def clock(self) -> Clock:
        """Return this clock as the sandbox expects it."""
        return Clock(now=self.now, monotonic=self.monotonic)
