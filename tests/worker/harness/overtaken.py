"""A store of which another process is the faster user, as often as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from worker.state import Store, Transaction


class Overtaken(Store):
    """A store in which another process writes first."""

    faster: Callable[[], None] | None = None

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Write after the other process."""
        if self.faster is not None:
            faster, self.faster = self.faster, None
            faster()
        with super().write() as tx:
            yield tx
