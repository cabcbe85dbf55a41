"""How long to wait before the next try."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

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

    def clear(self) -> None:
        """Reset: a try succeeded, or its conditions have changed."""
        self.tries, self.failed_at, self.not_before = 0, None, None


def backoff(tries: int, *, first_s: float, random: Random) -> timedelta:
    """Return the wait after a failed try: it doubles from ``first_s`` up to a minute, with jitter.

    The jitter shortens the wait by up to a quarter, so that many waiting calls are spread out and a minute remains the longest wait.

    Args:
        tries: Failed tries so far, without this one.
        first_s: The first wait in seconds.
        random: Source of jitter.
    """
    wait = min(LONGEST_S, first_s * 2.0 ** min(tries, 10))
    return timedelta(seconds=wait * random.uniform(0.75, 1.0))
