"""Runners: each performs one act at a time on its resource, in a thread, while the loop goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.runtime.acts import Act, Resource
from worker.state import Store


@dataclass(frozen=True, kw_only=True)
class Ended(Generic[Resource]):
    """An act that is over.

    Attributes:
        act: Which.
        result: What it gave; None also after an error.
        error: Why it failed, if it did.
    """

    act: Act[Resource, Any]
    result: Any
    error: NeucoError | None


class Runner(Generic[Resource]):
    """Performs one act at a time.

    Args:
        name: For the thread and the log.
        store: Where intents and outcomes are recorded, by the loop alone.
        wake: Called from the thread when an act has ended.
        checkpoint: Called before and after every act; tests kill the process there.
    """

    def __init__(
        self, name: str, store: Store, *, wake: Callable[[], None], checkpoint: Callable[[str], None]
    ) -> None:
        self._name = name
        self._store = store
        self._wake = wake
        self._checkpoint = checkpoint
        self._thread: threading.Thread | None = None
        self._ended: Ended[Resource] | None = None

    @property
    def busy(self) -> bool:
        """Whether an act is under way, or its outcome waits to be recorded."""
        return self._thread is not None

    def start(self, act: Act[Resource, Any], resource: Resource, now: datetime) -> None:
        """Record an act's intent and begin it.

        Raises:
            RuntimeError: If the runner is busy; that is a defect.
        """
        if self.busy:
            raise RuntimeError(f"runner {self._name} is busy")
        with self._store.write() as tx:
            act.intent(tx, now)
        self._ended = None
        # A daemon thread: a call that hangs must not keep the process from ending.
        self._thread = threading.Thread(
            target=self._run, args=(act, resource), name=f"runner-{self._name}", daemon=True
        )
        self._thread.start()

    def _run(self, act: Act[Resource, Any], resource: Resource) -> None:
        result, error = None, None
        try:
            self._checkpoint(f"before call {act.name}")
            result = act.perform(resource)
            self._checkpoint(f"after call {act.name}")
        except NeucoError as problem:
            error = problem
        except Exception as problem:  # noqa: BLE001 - converted: an unknown exception is infrastructure
            error = InfrastructureError(
                f"Unexpected {type(problem).__name__} in {self._name}.",
                cure="It is tried again; if it stays, the log of this moment tells the maintainers what happened.",
                code="unexpected",
            )
            error.__cause__ = problem
        self._ended = Ended(act=act, result=result, error=error)
        self._wake()

    @property
    def ended(self) -> Ended[Resource] | None:
        """The act that has ended, if one has; its outcome is still to be recorded."""
        return self._ended

    def record(self, now: datetime) -> None:
        """Record what came of the act that has ended, and be free for the next one.

        As long as it cannot be recorded, because the database cannot be written, the act stays: nothing that was done outside is forgotten.

        Raises:
            NeucoError: As the act or the database refuses it; an organizer's error is the act's own, and ends it.
        """
        ended = self._ended
        if self._thread is None or ended is None:
            raise RuntimeError(f"runner {self._name} has nothing to record")
        try:
            with self._store.write() as tx:
                if ended.error is None:
                    ended.act.outcome(tx, ended.result, now)
                else:
                    ended.act.failure(tx, ended.error, now)
        except OrganizerError:
            self._free()
            raise
        self._free()
        if ended.error is None:
            ended.act.recorded(ended.result, now)
        else:
            ended.act.failure_recorded(ended.error, now)

    def _free(self) -> None:
        if self._thread is not None:
            self._thread.join()
        self._thread, self._ended = None, None
