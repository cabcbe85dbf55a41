"""Whose folds a free core trains: those of the submission that came first.

If submissions shared the cores evenly, they would all end at the same time, and the cores would be idle until the next ones are read.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Give a number of cores to calls, first to those of the submission whose first call came first.

    Args:
        cores: How many calls may work at the same time.
    """

    def __init__(self, cores: int) -> None:
        self._free = cores
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int]] = []  # a heap: the submission's place, the call's number
        self._places: dict[str, int] = {}
        self._calls = 0

    @property
    def waiting(self) -> int:
        """How many calls wait for a core."""
        return len(self._waiting)

    @contextmanager
    def take(self, job: str) -> Iterator[None]:
        """Wait for a core, and hold it until the block ends.

        Args:
            job: The submission that the call belongs to.
        """
        with self._changed:
            self._calls += 1
            call = self._places.setdefault(job, self._calls), self._calls
            heapq.heappush(self._waiting, call)
            self._changed.wait_for(lambda: self._free > 0 and self._waiting[0] == call)
            heapq.heappop(self._waiting)
            self._free -= 1
            self._changed.notify_all()  # another core may be free for the next one
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()
