"""When a call to EvalAI may leave: how many per minute, and how long to wait before the next try.

EvalAI counts all calls of an account in a sliding window of one minute, and refuses further calls for up to a minute. The worker stays
below the limit and keeps a reserve for answers, so that other calls never delay a result.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

WINDOW = timedelta(seconds=60)


class Budget:
    """A sliding window of calls.

    Args:
        per_minute: Calls allowed in any 60 seconds.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._calls: deque[datetime] = deque()
        self._closed: tuple[datetime, datetime] | None = None

    @property
    def reserve(self) -> int:
        """Calls of each minute that only answers may use."""
        return max(2, self.per_minute // 5)

    def left(self, now: datetime) -> int:
        """Return how many calls may be made now."""
        # A time before the pause means that the clock was set back; then the pause must not stop all calls.
        if self._closed is not None and self._closed[0] <= now < self._closed[1]:
            return 0
        while self._calls and not now - WINDOW < self._calls[0] <= now:
            self._calls.popleft()  # too old, or in the future because the clock was set back
        return self.per_minute - len(self._calls)

    def allows(self, now: datetime, *, answer: bool = False, keep: int = 0) -> bool:
        """Return whether a call may be made now; only answers may use the reserve.

        Args:
            now: The time.
            answer: Whether an answer depends on the call.
            keep: Calls to leave for something more urgent.
        """
        return self.left(now) > (0 if answer else max(self.reserve, keep))

    def spend(self, now: datetime, calls: int = 1) -> None:
        """Count calls."""
        self._calls.extend([now] * calls)

    def close(self, now: datetime, until: datetime) -> None:
        """Allow no calls before a time (EvalAI's Retry-After)."""
        self._closed = (now, until)


LONGEST_S = 60.0


@dataclass(kw_only=True)
class Retry:
    """Counts failed tries of one thing in a row, and knows when the next try is due.

    Attributes:
        tries: Their number.
        failed_at: When the last one failed.
        not_before: When the next one is due.
    """

    tries: int = 0
    failed_at: datetime | None = None
    not_before: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Return whether the next try is due; a time before the last failure means that the clock was set back."""
        if self.failed_at is None or self.not_before is None:
            return True
        return not self.failed_at <= now < self.not_before

    def failed(self, now: datetime, *, again_at: datetime) -> None:
        """Count a failed try."""
        self.tries += 1
        self.failed_at, self.not_before = now, again_at


def backoff(tries: int, *, random: Random) -> timedelta:
    """Return the wait after a failed try: it doubles from a second up to a minute, with jitter.

    The jitter shortens the wait by up to a quarter, so that many waiting calls are spread out and a minute remains the longest wait.

    Args:
        tries: Failed tries so far, without this one.
        random: Source of jitter.
    """
    wait = min(LONGEST_S, 2.0 ** min(tries, 10))
    return timedelta(seconds=wait * random.uniform(0.75, 1.0))
