"""How long to wait before the next try."""

from __future__ import annotations

from datetime import timedelta
from random import Random

LONGEST_S = 60.0


def backoff(tries: int, *, first_s: float, random: Random) -> timedelta:
    """Return the wait after a failed try: doubling from ``first_s`` to a minute, for ever, with jitter.

    The jitter shortens by up to a quarter, so that many waiters do not come back in one moment and a minute stays the longest.

    Args:
        tries: Failed tries so far, this one not counted.
        first_s: The first wait in seconds.
        random: Source of jitter.
    """
    wait = min(LONGEST_S, first_s * 2.0 ** min(tries, 10))
    return timedelta(seconds=wait * random.uniform(0.75, 1.0))
