"""The rate limit: how many calls to EvalAI may leave in a minute.

EvalAI counts all calls of an account in a sliding window of one minute, and refuses further calls for up to a minute. The worker stays
below the limit and keeps a reserve for answers, so that other calls never delay a result.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=60)


class Budget:
    """A sliding window of calls.

    Args:
        per_minute: Calls allowed in any 60 seconds.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.total = 0
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
        self.total += calls
        self._calls.extend([now] * calls)

    def close(self, now: datetime, until: datetime) -> None:
        """Allow no calls before a time (EvalAI's Retry-After)."""
        self._closed = (now, until)
