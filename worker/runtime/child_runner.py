"""The runner of child acts: start their processes, check them at each step, and record how they ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import structlog

from scoring.errors import Cancelled, NeucoError
from worker.runtime.acts import NotDue
from worker.runtime.cgroup import Ceiling, Delegation
from worker.runtime.child_acts import (
    ChildAct,
    Died,
    OverLimit,
    Progress,
    Stopped,
    decode_error,
    no_child,
)
from worker.runtime.children import Child
from worker.runtime.runner import counted, record, unexpected
from worker.state import Outcome, Store


@dataclass(kw_only=True, eq=False)
class _Performance:
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


class ChildRunner:
    """Performs child acts, any number at a time.

    Args:
        store: Where intents and outcomes are recorded.
        wake: Called from a thread when a child has sent a message or ended.
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
        self._performances: list[_Performance] = []
        self._log = structlog.get_logger("neuco_worker")

    @property
    def acts(self) -> list[ChildAct[Any]]:
        """The acts that are under way, or whose outcomes wait to be recorded."""
        return [performance.act for performance in self._performances]

    def start(self, act: ChildAct[Any], now: datetime, *, cgroup: Delegation | None = None) -> bool:
        """Record an act's intent and start its child; return whether it was still due. Nothing starts while the process is ending.

        Args:
            act: What to do.
            now: The time.
            cgroup: Where the child gets a memory limit from the kernel.
        """
        if self._store.stopping:
            return False
        try:
            with self._store.write() as tx:
                act.intent(tx, now)
        except NotDue:
            return False
        performance = _Performance(act=act, looked_at=now)
        self._performances.append(performance)
        self._checkpoint(f"before child {act.name}")
        try:
            order = act.order()
            performance.child = Child(
                act.module,
                order,
                folder=act.folder,
                wake=self._wake,
                ceiling=_ceiling(act, cgroup),
            )
        except OSError as problem:
            shutil.rmtree(act.folder, ignore_errors=True)  # the order may have written hidden tasks there
            performance.error = no_child(problem)
        except Exception as problem:  # noqa: BLE001 - converted: otherwise the act would never end
            performance.error = unexpected(problem, f"the start of {act.name}")
        self._checkpoint(f"during child {act.name}")
        return True

    def look(self, now: datetime) -> bool:
        """Record the acts that had ended at the last look, and check the other children; return whether anything moved.

        While the database cannot be written, ended acts are kept, so that no result is lost.
        """
        ended = [performance for performance in self._performances if performance.over]
        moved = bool(ended)
        for performance in self._performances:
            if not performance.over:
                moved |= self._supervise(performance, now)
        for performance in ended:
            self._record(performance, now)
        return moved

    def stop(self, now: datetime) -> None:
        """Kill all children because the worker ends."""
        for performance in self._performances:
            if not performance.over:
                performance.error = Stopped()
            if performance.child is not None:
                performance.child.group.kill()
        try:
            for performance in list(self._performances):
                self._record(performance, now)
        finally:  # an act that could not be recorded is found open at the next start, and marked dead
            for performance in self._performances:
                if performance.child is not None:
                    performance.child.close()

    def _supervise(self, performance: _Performance, now: datetime) -> bool:
        act, child = performance.act, performance.child
        if child is None:
            return False
        status = child.ended()  # first: after the exit, all its messages have arrived
        moved = self._listen(performance, child)
        if performance.over:
            return True
        performance.spent_s += counted(performance.looked_at, now)
        performance.looked_at = now
        if status is not None:
            performance.error = self._death(act, child, status)
        elif not self._is_due(act):
            performance.error = Cancelled("It is not to be done any more.")
        elif performance.spent_s > act.limits.deadline_s:
            performance.error = OverLimit(Outcome.DEADLINE)
        elif (most := act.limits.memory_bytes) is not None and child.group.memory_bytes() > most:
            performance.error = OverLimit(Outcome.MEMORY)
        if performance.error is not None:
            child.group.kill()
        return moved or performance.over

    def _listen(self, performance: _Performance, child: Child) -> bool:
        """Process the child's messages; return whether there were any."""
        moved = False
        for message in child.messages():
            moved, kind = True, message.get("kind")
            if kind == "done":
                performance.result = message
            elif kind == "error":
                performance.error = decode_error(message)
            else:
                performance.act.progress(cast("Progress", message))
        return moved

    def _is_due(self, act: ChildAct[Any]) -> bool:
        with self._store.read() as tx:
            return act.is_due(tx)

    def _death(self, act: ChildAct[Any], child: Child, status: int) -> NeucoError:
        """Return the error for a child's death; its stderr goes only to the log."""
        if errors := child.errors():
            self._log.error(
                "Child process failed.",
                event_key=f"{act.name}.stderr",
                child=act.folder.name,
                stderr=errors[-2000:],
            )
        return OverLimit(Outcome.MEMORY) if child.group.out_of_memory() else Died(status)

    def _record(self, performance: _Performance, now: datetime) -> None:
        act, child = performance.act, performance.child
        self._checkpoint(f"after child {act.name}")
        if child is not None:
            act.peak_memory_bytes = child.group.peak_memory_bytes
        error = record(self._store, act, performance.result, performance.error, now)
        self._performances.remove(performance)
        if child is not None:
            child.close()
        if error is not None:
            act.failure_recorded(error, now)
        else:
            act.recorded(performance.result, now)


def _ceiling(act: ChildAct[Any], cgroup: Delegation | None) -> Ceiling | None:
    """Make the cgroup of an act's child, if the kernel allows it."""
    memory_bytes = act.limits.memory_bytes
    if cgroup is None or memory_bytes is None:
        return None
    return cgroup.ceiling(act.folder.name, memory_bytes=memory_bytes)
