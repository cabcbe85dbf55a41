"""Taking a file's lock from another process that will soon let go of it.

The package filelock does not do it: it can take a lock, but not share one for a moment, which is how a command asks who leads without
keeping the leader from it. With a part of the locking of our own in any case, one loop around ``flock`` is less than a dependency.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable

LOOK_S = 0.05


def taken_within(wait_s: float, handle: int, *, given_up: Callable[[], bool] = lambda: False) -> bool:
    """Take the exclusive lock of an open file; tell whether it became ours.

    Args:
        wait_s: How long to try.
        handle: File descriptor; closing it gives the lock back.
        given_up: Ends the trying early.
    """
    ends = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if given_up() or time.monotonic() >= ends:
                return False
            time.sleep(LOOK_S)
        else:
            return True
