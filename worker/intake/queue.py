"""EvalAI's queue: its messages only name submissions, so they are received when calls are left, and deleted once these are stored.

A message that is not deleted, because a call fails or the worker ends, comes back and is taken again, so no deletion is recorded.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from scoring.errors import OrganizerError
from worker.challenge.context import Job
from worker.evalai import Client, Message
from worker.intake import facts
from worker.intake.calls import Call
from worker.state import Transaction

POLL = Job("poll", lambda configuration: configuration.evalai.poll_every)


@dataclass(kw_only=True, eq=False, repr=False)
class ReceiveMessage(Call["Message | None"]):
    """Delete the message that was received before, and receive the next one.

    Attributes:
        receipt: By which it may be deleted, because its submission was stored.
    """

    name = "poll"
    receipt: str | None = field(init=False, default=None)

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Take the receipt of the message before, which is used once: EvalAI may not know it any more."""
        self._old, self.session.receipt = self.session.receipt, None

    def perform(self, resource: Client) -> Message | None:
        """Receive at most one message; unless it is deleted, it comes back after half a minute."""
        if self._old is not None:
            with suppress(OrganizerError):
                resource.delete_message(self._old)
        return resource.receive()

    def outcome(self, tx: Transaction, result: Message | None, now: datetime) -> None:
        """Store its submission; leave a message for another challenge where it is."""
        tx.set_fact("polled_at", now.isoformat())
        if result is None:
            return
        if result.challenge_pk not in (None, self.context.configuration.evalai.challenge):
            text = (
                f"The queue contains a message for challenge {result.challenge_pk}, which this worker does not serve. The worker"
                " leaves it there. Check evalai.queue and evalai.challenge."
            )
            tx.raise_alert("queue.foreign", "queue.foreign", text, now=now, happened=True)
            return
        self.context.checkpoint("before message taken")
        if facts.take_message(tx, result, now=now):
            self.receipt = result.receipt_handle

    def recorded(self, result: Message | None, now: datetime) -> None:
        """Note what the queue returned; a message that was not taken counts as an empty queue."""
        self.context.timetable.done(POLL, now)
        self.session.receipt = self.receipt
        self.session.empty_polls = self.session.empty_polls + 1 if self.receipt is None else 0
