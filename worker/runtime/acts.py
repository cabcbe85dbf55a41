"""Acts and their runner: every effect outside the database is a class, performed in a thread while the main loop continues."""

from __future__ import annotations

import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import structlog

from scoring.errors import InfrastructureError, NeucoError
from worker.state import StateFailed, Store, Transaction

Resource = TypeVar("Resource")
Result = TypeVar("Result")
LOOK_S = 5.0
"""Longest time that counts between two looks at an act, because a jump of the clock or a suspended machine is not the act's fault."""


Start = Callable[[], object]
"""Begins something that was found to be due; returns True if the next reading should follow at once. An act wakes the loop when it ends."""


class Stage(Protocol):
    """A part of the worker that decides what begins next."""

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield what is to begin."""


def begin(store: Store, now: datetime, *stages: Stage) -> bool:
    """Read the state once, and begin what stages find due in it; return whether the next reading should follow at once.

    Another process may change the state before something begins, so what would do harm then reads it again in its own transaction.
    """
    starts: list[Start] = []
    try:
        with store.read() as tx:
            for stage in stages:
                starts += stage.starts(tx, now)
    finally:  # what is due does not wait for a stage that fails
        moved = True in [start() for start in starts]
    return moved


class NotDue(Exception):
    """Raised by an intent that finds in its transaction that the act is no longer needed; nothing is recorded then."""


class RecordedAct(ABC, Generic[Result]):
    """The database's part of an act: what is recorded before it and after it.

    While the act is under way, everything except what its intent recorded may change, so outcome and failure read their rows again.

    Attributes:
        name: Name for the log, the back-off and the points at which tests kill the process.
    """

    name: ClassVar[str]

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record what is about to happen, so that the next start can tell if the process died during the act.

        Raises:
            NotDue: If the act is no longer needed.
            NeucoError: If it cannot begin, which is a failure of the act.
        """

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Record what follows from success.

        Raises:
            NeucoError: If it cannot be recorded. Nothing of the outcome is kept then, and the act has failed.
        """

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Record what follows from an error."""

    def recorded(self, result: Result, now: datetime) -> None:
        """Update objects in memory after a success, but only once its outcome is committed, because a transaction may fail."""


class Act(RecordedAct[Result], Generic[Resource, Result]):
    """One effect outside the database, performed by a thread.

    Attributes:
        what: Subject of a sentence about it, for people.
        time_out_s: Seconds after which it is given up; longer than the time-outs of the libraries.
        computing: Whether it is computing now. Then only the processor time of this process counts, of which a busy machine gives little.
    """

    what: ClassVar[str]
    time_out_s: float
    computing = False

    @abstractmethod
    def perform(self, resource: Resource) -> Result:
        """Perform the act in a thread of its own, without changing any of our state.

        Raises:
            NeucoError: If it fails.
        """

    def give_up(self, resource: Resource) -> None:
        """End an act that hangs, as far as another thread can; whatever it still does is ignored."""


class UnrecordedAct(Act[Resource, Result]):
    """An act that must work while the database cannot be written; none of its methods for the database is called."""


SHARED = frozenset({"child", "disk", "engine", "library"})
"""Families of errors that the acts of all submissions meet alike."""


def fault_key(step: str, error: NeucoError, pk: int) -> str:
    """Return the key of the alert that a step failed: one for each submission, or one for a fault that all share."""
    return f"{step}:{error.code if error.code.partition('.')[0] in SHARED else pk}"


def counted(since: datetime, now: datetime) -> float:
    """Return how many seconds between two looks count against an act."""
    return min(max((now - since).total_seconds(), 0.0), LOOK_S)


def unexpected(problem: Exception, where: str) -> InfrastructureError:
    """Turn an unexpected exception into one of our errors; its traceback goes to the log."""
    structlog.get_logger("neuco_worker").error(
        f"Unexpected {type(problem).__name__} in {where}.",
        event_key="unexpected",
        traceback="".join(traceback.format_exception(problem)),
    )
    error = InfrastructureError(
        f"Unexpected {type(problem).__name__} in {where}.",
        hint="The worker tries again. If this continues, report it as a bug in neuco-worker, with the log of that minute.",
        code="unexpected",
    )
    error.__cause__ = problem
    return error


def error_of(problem: Exception, where: str) -> NeucoError:
    """Return why an act failed, from what it raised in a transaction.

    Only a failure of the state says nothing about the act. Any other error would come back at every step, and block everything else.

    Raises:
        StateFailed: If the problem is the state's.
    """
    if isinstance(problem, StateFailed):
        raise problem
    return problem if isinstance(problem, NeucoError) else unexpected(problem, where)


def record(
    store: Store, act: RecordedAct[Result], result: Result, error: NeucoError | None, now: datetime
) -> NeucoError | None:
    """Record the result of an act; return why it, or its outcome, failed.

    Raises:
        StateFailed: If the state cannot be written.
    """
    if error is None:
        try:
            with store.write() as tx:
                act.outcome(tx, result, now)
        except Exception as problem:  # noqa: BLE001 - converted: an unknown exception is infrastructure
            error = error_of(problem, f"the outcome of {act.name}")
        else:
            act.recorded(result, now)
            return None
    with store.write() as tx:
        act.failure(tx, error, now)
    return error


@dataclass(frozen=True, kw_only=True)
class Ended(Generic[Resource]):
    """An act that has ended.

    Attributes:
        act: The act.
        result: Its result; None after an error.
        error: Why it failed, if it did.
        given_up: Whether it hung, so that its thread may still be using the resource.
    """

    act: Act[Resource, Any]
    result: Any = None
    error: NeucoError | None = None
    given_up: bool = False


@dataclass(kw_only=True)
class _Performance(Generic[Resource]):
    """One performance of an act; its thread writes here, even after the act was given up."""

    act: Act[Resource, Any]
    resource: Resource
    looked_at: datetime
    spent_s: float = 0.0
    processor_s: float = field(default_factory=time.process_time)
    ended: Ended[Resource] | None = None


class Runner(Generic[Resource]):
    """Performs one act at a time.

    Args:
        name: Name for the thread and the log.
        store: Where the main loop records intents and outcomes.
        wake: Called when an act has ended, usually from its thread.
        checkpoint: Called before and after every act; tests kill the process there.
    """

    def __init__(
        self, name: str, store: Store, *, wake: Callable[[], None], checkpoint: Callable[[str], None]
    ) -> None:
        self._name = name
        self._store = store
        self._wake = wake
        self._checkpoint = checkpoint
        self._performance: _Performance[Resource] | None = None

    @property
    def busy(self) -> bool:
        """Whether an act is under way, or its outcome waits to be recorded."""
        return self._performance is not None

    def start(self, act: Act[Resource, Any], resource: Resource, now: datetime) -> None:
        """Record an act's intent and begin it, if it is still due. Nothing begins while the process is ending.

        If the intent fails, the act has ended with that error.

        Raises:
            StateFailed: If the state cannot be written.
            RuntimeError: If the runner is busy, which is a defect.
        """
        if self.busy:
            raise RuntimeError(f"runner {self._name} is busy")
        if self._store.stopping:
            return
        performance = _Performance(act=act, resource=resource, looked_at=now)
        if not isinstance(act, UnrecordedAct):
            try:
                with self._store.write() as tx:
                    act.intent(tx, now)
            except NotDue:
                return
            except Exception as problem:  # noqa: BLE001 - converted, as in record
                performance.ended = Ended(act=act, error=error_of(problem, f"the intent of {act.name}"))
                self._performance = performance
                self._wake()
                return
        self._performance = performance
        # A daemon thread: an act that hangs must not keep the process from ending.
        threading.Thread(
            target=self._perform, args=(performance,), name=f"runner-{self._name}", daemon=True
        ).start()

    def _perform(self, performance: _Performance[Resource]) -> None:
        act = performance.act
        try:
            self._checkpoint(f"before call {act.name}")
            result = act.perform(performance.resource)
            self._checkpoint(f"after call {act.name}")
            performance.ended = Ended(act=act, result=result)
        except NeucoError as error:
            performance.ended = Ended(act=act, error=error)
        except Exception as problem:  # noqa: BLE001 - converted: an unknown exception is infrastructure
            performance.ended = Ended(act=act, error=unexpected(problem, self._name))
        self._wake()

    def look(self, now: datetime) -> Ended[Resource] | None:
        """Return the act that has ended and is not recorded yet, None if there is none; an act that hangs is given up."""
        performance = self._performance
        if performance is None:
            return None
        spent_s, computed_s = (
            counted(performance.looked_at, now),
            time.process_time() - performance.processor_s,
        )
        performance.looked_at, performance.processor_s = now, time.process_time()
        performance.spent_s += min(spent_s, computed_s) if performance.act.computing else spent_s
        if performance.ended is None and performance.spent_s > performance.act.time_out_s:
            self._give_up(performance)
        return self._performance.ended if self._performance is not None else None

    def _give_up(self, performance: _Performance[Resource]) -> None:
        """Abandon the thread, with a performance that is no longer looked at."""
        act = performance.act
        error = InfrastructureError(
            f"{act.what} did not finish within {act.time_out_s:.0f} seconds and was stopped.",
            hint="The worker tries again. If this continues, check the network and the service that it calls.",
            code="act.timed_out",
        )
        ended: Ended[Resource] = Ended(act=act, error=error, given_up=True)
        self._performance = replace(performance, ended=ended)
        act.give_up(performance.resource)

    def stop(self) -> None:
        """End the act under way, as far as that is possible from this thread, because the process ends."""
        if self._performance is not None:
            self._performance.act.give_up(self._performance.resource)

    def collect(self, now: datetime) -> Ended[Resource] | None:
        """Record the act that has ended, return it as it was recorded, None if there is none, and accept the next one.

        While the database cannot be written, the act is kept, so that its result is not lost.

        Raises:
            StateFailed: As :func:`record`.
        """
        ended = self.look(now)
        if ended is None:
            return None
        if not isinstance(ended.act, UnrecordedAct):
            ended = replace(ended, error=record(self._store, ended.act, ended.result, ended.error, now))
        self._performance = None
        return ended
