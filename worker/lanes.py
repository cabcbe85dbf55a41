"""Lanes: places where one slow thing at a time happens while the loop goes on.

A lane runs a function in a thread and hands its outcome back to the loop, which asks with :meth:`Lane.collect`. The function talks to the
network or to git and touches no state of ours; what follows from its outcome happens in the loop, the only place that writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from scoring.errors import InfrastructureError, NeucoError

Result = TypeVar("Result")


class Lane(Generic[Result]):
    """One slow thing at a time.

    Args:
        name: For the thread and the log.
        wake: Called from the thread when an outcome is ready.
    """

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self.name = name
        self._wake = wake
        self._thread: threading.Thread | None = None
        self._outcome: tuple[Result | None, NeucoError | None] | None = None
        self._done: Callable[[Result, datetime], None] = lambda _, __: None
        self._failed: Callable[[NeucoError, datetime], None] = lambda _, __: None

    @property
    def busy(self) -> bool:
        """Whether something is under way or waits to be collected."""
        return self._thread is not None

    def start(
        self,
        work: Callable[[], Result],
        *,
        done: Callable[[Result, datetime], None],
        failed: Callable[[NeucoError, datetime], None],
    ) -> None:
        """Begin ``work``; later, from :meth:`collect`, exactly one of ``done`` and ``failed`` is called.

        Raises:
            RuntimeError: If the lane is busy; that is a defect.
        """
        if self.busy:
            raise RuntimeError(f"lane {self.name} is busy")
        self._outcome = None
        self._done, self._failed = done, failed
        # A daemon thread: a call that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"lane-{self.name}", daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Result]) -> None:
        try:
            self._outcome = (work(), None)
        except NeucoError as error:
            self._outcome = (None, error)
        except Exception as error:  # noqa: BLE001 - converted: an unknown exception is infrastructure
            unknown = InfrastructureError(
                f"Unexpected {type(error).__name__} in {self.name}.", code="unexpected"
            )
            unknown.__cause__ = error
            self._outcome = (None, unknown)
        self._wake()

    def collect(self, now: datetime) -> bool:
        """Hand over a finished outcome; tell whether there was one."""
        if self._thread is None or self._outcome is None:
            return False
        self._thread.join()
        result, error = self._outcome
        self._thread = None
        if error is not None:
            self._failed(error, now)
        else:
            self._done(result, now)  # type: ignore[arg-type]  # Result itself may be None
        return True
