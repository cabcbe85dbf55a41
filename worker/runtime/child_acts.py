"""Child acts and their runner: work in a child process, because it may hang, crash, or take too many resources."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import structlog

from scoring.errors import Cancelled, InfrastructureError, NeucoError, read_error
from worker.runtime import storage
from worker.runtime.acts import NotDue, RecordedAct, Result, counted, record, unexpected
from worker.runtime.child import Child, command
from worker.state import Outcome, Store, Transaction


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a child.

    Attributes:
        deadline_s: Seconds from its start to its end.
        memory_bytes: Memory of the child and all processes that it starts.
    """

    deadline_s: float
    memory_bytes: int


class ChildAct(RecordedAct[Result]):
    """Work for a child process; order and result are JSON documents, and the result is the child's last message.

    Attributes:
        module: What the child runs, see :mod:`worker.runtime.child_main`.
        folder: The child's temporary folder, which is removed when the outcome is recorded; known after the intent.
    """

    module: ClassVar[str]
    folder: Path

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """The limits of the child, as configured now."""

    @abstractmethod
    def order(self) -> Mapping[str, object]:
        """Return what the child is to do; called after the intent."""

    def progress(self, message: Mapping[str, Any]) -> None:
        """Note the child's progress: its current ``stage``."""

    def is_due(self, tx: Transaction) -> bool:
        """Return whether the work is still needed; if not, the child is killed."""
        return True


class OverLimit(InfrastructureError):
    """A child was killed because it exceeded a limit; the act decides what that means.

    Args:
        limit: The limit, :attr:`Outcome.DEADLINE` or :attr:`Outcome.MEMORY`.
    """

    def __init__(self, limit: Outcome) -> None:
        super().__init__(
            f"A child process went over its limit ({limit}).",
            hint="Raise submission.deadline or submission.memory_gigabytes, and try again.",
        )
        self.limit = limit


class Died(InfrastructureError):
    """A child ended without reporting a result or an error; the act decides what that means.

    Args:
        status: Its exit status, negative for a signal.
    """

    def __init__(self, status: int) -> None:
        reason = f"on signal {-status}" if status < 0 else f"with exit status {status}"
        super().__init__(
            f"A child process ended {reason}.",
            hint="Run the command again. If this continues, check the memory of this machine.",
        )
        self.status = status
        self.reason = reason


def no_child(problem: OSError) -> InfrastructureError:
    """Return the error for a process that the machine could not start."""
    if storage.is_full(problem):
        return storage.full("there is no room for the folder of a submission's process")
    return InfrastructureError(
        f"A child process for a submission could not be started ({problem.strerror}).",
        hint="The worker tries again. If this continues, check the memory, disk space and number of processes of this machine.",
        code="child.start",
    )


@dataclass(kw_only=True, eq=False)
class _ChildPerformance:
    """One child act that is under way, or has ended and is not recorded yet."""

    act: ChildAct[Any]
    looked_at: datetime
    child: Child | None = None
    spent_s: float = 0.0
    result: dict[str, Any] | None = None
    error: NeucoError | None = None

    @property
    def over(self) -> bool:
        return self.result is not None or self.error is not None


def _reason_to_kill(performance: _ChildPerformance, child: Child, *, due: bool) -> NeucoError | None:
    """Return why a child must end; None if it may go on."""
    limits = performance.act.limits
    if not due:
        return Cancelled("No longer needed.")
    if performance.spent_s > limits.deadline_s:
        return OverLimit(Outcome.DEADLINE)
    if child.memory_bytes() > limits.memory_bytes:
        return OverLimit(Outcome.MEMORY)
    return None


class ChildRunner:
    """Performs child acts, any number at a time.

    Args:
        store: Where intents and outcomes are recorded.
        wake: Called when a child has sent a message or ended, usually from a thread.
        checkpoint: Called at the points at which tests kill the process.
    """

    def __init__(
        self,
        store: Store,
        *,
        wake: Callable[[], None],
        checkpoint: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._wake = wake
        self._checkpoint = checkpoint
        self._performances: list[_ChildPerformance] = []
        self._log = structlog.get_logger("neuco_worker")

    @property
    def acts(self) -> list[ChildAct[Any]]:
        """The acts that are under way, or whose outcomes wait to be recorded."""
        return [performance.act for performance in self._performances]

    def start(self, act: ChildAct[Any], now: datetime) -> None:
        """Record an act's intent and start its child, if it is still due. Nothing starts while the process is ending.

        Args:
            act: What to do.
            now: The time.
        """
        if self._store.stopping:
            return
        try:
            with self._store.write() as tx:
                act.intent(tx, now)
        except NotDue:
            return
        performance = _ChildPerformance(act=act, looked_at=now)
        self._performances.append(performance)
        self._checkpoint(f"before child {act.name}")
        try:
            performance.child = Child(command(act.module), act.order(), folder=act.folder, wake=self._wake)
        except Exception as problem:  # noqa: BLE001 - converted: otherwise the act would never end
            shutil.rmtree(act.folder, ignore_errors=True)  # the order may have written hidden tasks there
            performance.error = (
                no_child(problem)
                if isinstance(problem, OSError)
                else unexpected(problem, f"the start of {act.name}")
            )
            self._wake()
        self._checkpoint(f"during child {act.name}")

    def look(self, now: datetime) -> bool:
        """Record the acts that had ended at the last look, and check the other children; return whether one has ended now.

        While the database cannot be written, ended acts are kept, so that no result is lost.
        """
        ended = [performance for performance in self._performances if performance.over]
        for performance in self._performances:
            if not performance.over:
                self._supervise(performance, now)
        for performance in ended:
            self._record(performance, now)
        return any(performance.over for performance in self._performances)

    def stop(self, now: datetime) -> None:
        """Kill all children because the worker ends."""
        for performance in self._performances:
            if not performance.over:
                performance.error = Cancelled("The worker was stopped.")
            if performance.child is not None:
                performance.child.kill()
        try:
            for performance in list(self._performances):
                self._record(performance, now)
        finally:  # an act that could not be recorded is found open at the next start, and marked dead
            for performance in self._performances:
                if performance.child is not None:
                    performance.child.close()

    def _supervise(self, performance: _ChildPerformance, now: datetime) -> None:
        act, child = performance.act, performance.child
        if child is None:
            return
        with self._store.read() as tx:
            due = act.is_due(tx)
        status = child.ended()  # first: after the exit, all its messages have arrived
        self._listen(performance, child)
        if performance.over:
            return
        performance.spent_s += counted(performance.looked_at, now)
        performance.looked_at = now
        if status is not None:
            if errors := child.errors():  # only for the log
                self._log.error(
                    "Child process failed.",
                    event_key=f"{act.name}.stderr",
                    child=act.folder.name,
                    stderr=errors[-2000:],
                )
            performance.error = Died(status)
        elif (reason := _reason_to_kill(performance, child, due=due)) is not None:
            child.hear_out()
            self._listen(performance, child)  # the stage that it had reached decides who is to blame
            if not performance.over:
                performance.error = reason

    def _listen(self, performance: _ChildPerformance, child: Child) -> None:
        """Process the child's messages."""
        for message in child.messages():
            kind = message.get("kind")
            if kind == "done":
                performance.result = message
            elif kind == "error":
                ran_out = message.get("family") == "memory"
                performance.error = OverLimit(Outcome.MEMORY) if ran_out else read_error(message)
            elif kind == "log":
                self._log.warning(message["sentence"], event_key=f"{performance.act.name}.log")
            else:
                performance.act.progress(message)

    def _record(self, performance: _ChildPerformance, now: datetime) -> None:
        act, child = performance.act, performance.child
        self._checkpoint(f"after child {act.name}")
        record(self._store, act, performance.result, performance.error, now)
        self._performances.remove(performance)
        if child is not None:
            child.close()
