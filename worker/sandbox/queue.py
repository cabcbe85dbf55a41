"""The message queue of a challenge, which behaves like a standard queue of Amazon SQS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import NAMESPACE_OID, uuid5

from worker.sandbox.faults import FaultSource

Outcome = Literal["deleted", "ignored", "unknown"]


@dataclass(kw_only=True, eq=False)
class QueuedMessage:
    """A message with the handle of its newest delivery, which alone is valid."""

    body: Mapping[str, Any]
    visible_s: float = 0.0
    handle: str = ""


class Queue:
    """A queue with a visibility time-out and a new receipt handle for each delivery; it delivers the oldest visible message."""

    def __init__(self, visibility_timeout_s: float, faults: FaultSource) -> None:
        self.visibility_timeout_s = visibility_timeout_s
        self._faults = faults
        self._messages: list[QueuedMessage] = []
        self._handles: dict[str, QueuedMessage] = {}

    def __len__(self) -> int:
        """Return the number of messages that are not deleted, visible or not."""
        return len(self._messages)

    def send(self, body: Mapping[str, Any]) -> None:
        """Put a message into the queue."""
        self._messages.append(QueuedMessage(body=dict(body)))

    def receive(self, now_s: float) -> tuple[Mapping[str, Any], str] | None:
        """Deliver at most one visible message and hide it for the visibility time-out."""
        plan = self._faults.plan
        visible = [m for m in self._messages if m.visible_s <= now_s]
        if not visible or self._faults.strikes(plan.empty):
            return None
        reordered = self._faults.strikes(plan.reorder)
        message = self._faults.rng.choice(visible) if reordered else visible[0]
        if not self._faults.strikes(plan.duplicate):
            message.visible_s = now_s + self.visibility_timeout_s
        message.handle = uuid5(NAMESPACE_OID, str(len(self._handles))).hex
        self._handles[message.handle] = message
        return message.body, message.handle

    def delete(self, handle: str) -> Outcome:
        """Delete a message by the handle of one of its deliveries.

        Deleting it twice does no harm. An outdated handle reports success but deletes nothing.
        """
        message = self._handles.get(handle)
        if message is None:
            return "unknown"
        if message in self._messages and message.handle != handle:
            return "ignored"
        self._messages = [other for other in self._messages if other is not message]
        return "deleted"

    def purge(self) -> None:
        """Lose every message, as at the end of the retention period."""
        self._messages.clear()
