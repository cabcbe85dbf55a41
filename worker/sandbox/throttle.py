"""EvalAI's rate limit: a sliding window of accepted calls per user."""

from __future__ import annotations

import math
from collections import deque

WINDOW_S = 60.0


class Throttle:
    """Accepts at most ``per_minute`` calls of one user in any sixty seconds.

    All endpoints and both token schemes share one count. Refused calls do not count.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._calls: dict[str, deque[float]] = {}

    def admit(self, user: str, now_s: float) -> int | None:
        """Count a call; return None if it is accepted, otherwise the whole seconds to wait."""
        calls = self._calls.setdefault(user, deque())
        while calls and calls[0] <= now_s - WINDOW_S:
            calls.popleft()
        if len(calls) < self.per_minute:
            calls.append(now_s)
            return None
        oldest = calls[0] if calls else now_s
        return max(1, math.ceil(WINDOW_S - (now_s - oldest)))
