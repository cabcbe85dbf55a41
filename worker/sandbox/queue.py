"""The message queue of a challenge, which behaves like Amazon SQS."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Body = Mapping[str, int | str]
Outcome = Literal["deleted", "ignored", "unknown"]


@dataclass(frozen=True, kw_only=True)
class QueueFaults:
    """How often, from 0 to 1, a standard queue does what SQS does not rule out."""

    duplicate: float = 0.0  # a delivered message also stays visible
    reorder: float = 0.0  # any visible message is delivered instead of the oldest
    empty: float = 0.0  # a short poll returns nothing although a message waits


@dataclass(kw_only=True)
class Message:
    """A message with the handles of its deliveries, of which only the newest is valid."""

    number: int
    body: Body
    group: str
    sent_s: float
    visible_s: float = 0.0
    handles: list[str] = field(default_factory=list)
    deleted: bool = False


class Queue:
    """A queue with a visibility time-out, a new receipt handle for each delivery, and a retention period.

    Standard queues deliver the oldest visible message, at least once. FIFO queues hold back a group (phase and team) while one of its
    messages is being processed.
    """

    def __init__(
        self,
        *,
        visibility_timeout_s: float,
        retention_s: float,
        fifo: bool = False,
        seed: int = 0,
        faults: QueueFaults | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.visibility_timeout_s = visibility_timeout_s
        self.faults = faults or QueueFaults()
        self._retention_s = retention_s
        self._fifo = fifo
        self._seed = seed
        self._rng = rng or random.Random(seed)  # noqa: S311 - draws faults, not secrets
        self._messages: dict[int, Message] = {}
        self._handles: dict[str, Message] = {}
        self._sent = 0

    def __len__(self) -> int:
        """Return the number of messages that are not deleted, visible or not."""
        return len(self._messages)

    def send(self, body: Body, *, group: str, now_s: float) -> None:
        """Put a message into the queue."""
        self._sent += 1
        self._messages[self._sent] = Message(number=self._sent, body=dict(body), group=group, sent_s=now_s)

    def receive(self, now_s: float) -> tuple[Body, str] | None:
        """Deliver at most one visible message and hide it for the visibility time-out."""
        for old in [m for m in self._messages.values() if now_s - m.sent_s > self._retention_s]:
            del self._messages[old.number]
        visible = [m for m in self._messages.values() if m.visible_s <= now_s]
        if self._fifo:
            first: dict[str, Message] = {}
            for message in self._messages.values():
                first.setdefault(message.group, message)
            visible = [m for m in visible if first[m.group] is m]
        if not visible or self._strikes(self.faults.empty):
            return None
        message = visible[0]
        if not self._fifo and self._strikes(self.faults.reorder):
            message = self._rng.choice(visible)
        if self._fifo or not self._strikes(self.faults.duplicate):
            message.visible_s = now_s + self.visibility_timeout_s
        handle = self._handle(message)
        message.handles.append(handle)
        self._handles[handle] = message
        return message.body, handle

    def delete(self, handle: str) -> Outcome:
        """Delete a message by the handle of one of its deliveries.

        Deleting it twice does no harm. On a standard queue, an outdated handle reports success but deletes nothing.
        """
        message = self._handles.get(handle)
        if message is None:
            return "unknown"
        if message.deleted:
            return "deleted"
        if message.handles[-1] != handle:
            return "unknown" if self._fifo else "ignored"
        message.deleted = True
        self._messages.pop(message.number, None)
        return "deleted"

    def bodies(self) -> list[Body]:
        """Return the bodies of all messages that are not deleted."""
        return [message.body for message in self._messages.values()]

    def purge(self) -> None:
        """Lose every message, as at the end of the retention period."""
        self._messages.clear()

    def show(self, now_s: float) -> None:
        """Make all hidden messages visible at once."""
        for message in self._messages.values():
            message.visible_s = min(message.visible_s, now_s)

    def _strikes(self, probability: float) -> bool:
        return probability > 0 and self._rng.random() < probability

    def _handle(self, message: Message) -> str:
        name = f"{self._seed}/{message.number}/{len(message.handles)}"
        return hashlib.sha256(name.encode()).hexdigest() * 2
