"""How long to wait before the next try."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

LONGEST_S = 60.0


@dataclass(kw_only=True)
class Retry:
    """Tries in vain of one thing, in a row, and when the next one may come.

    Attributes:
        tries: How many.
        failed_at: When the last one failed.
        not_before: When the next one may come.
    """

    tries: int = 0
    failed_at: datetime | None = None
    not_before: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Return whether the next one may come now; before the last failure means that the clock was set back."""
        if self.failed_at is None or self.not_before is None:
            return True
        return not self.failed_at <= now < self.not_before

    def failed(self, now: datetime, *, again_at: datetime) -> None:
        """Count a try in vain."""
        self.tries += 1
        self.failed_at, self.not_before = now, again_at

    def clear(self) -> None:
        """Start over: it worked, or what it depends on has changed."""
        self.tries, self.failed_at, self.not_before = 0, None, None


def backoff(tries: int, *, first_s: float, random: Random) -> timedelta:
    """Return the wait after a failed try: doubling from ``first_s`` to a minute, indefinitely, with jitter.

    The jitter shortens by up to a quarter, so that many waiters do not come back in one moment and a minute stays the longest.

    Args:
        tries: Failed tries so far, this one not counted.
        first_s: The first wait in seconds.
        random: Source of jitter.
    """
    wait = min(LONGEST_S, first_s * 2.0 ** min(tries, 10))
    return timedelta(seconds=wait * random.uniform(0.75, 1.0))
