"""EvalAI's queue: its messages only name submissions, so they are received when calls are left, and deleted once these are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from scoring.errors import NeucoError
from worker.challenge.context import Job
from worker.evalai import Client, Message
from worker.intake import facts
from worker.intake.calls import Call
from worker.state import OutboxRow, Transaction

POLL = Job("poll", lambda configuration: configuration.evalai.poll_every)
GIVE_UP_TRIES = 5  # failed tries to delete a message


@dataclass(kw_only=True, eq=False, repr=False)
class ReceiveMessage(Call["Message | None"]):
    """Receive a message of the queue.

    Attributes:
        foreign: Whether it was one for another challenge.
    """

    name = "poll"
    foreign: bool = field(init=False, default=False)

    def perform(self, resource: Client) -> Message | None:
        """Receive at most one message; unless it is deleted, it comes back after half a minute."""
        return resource.receive()

    def outcome(self, tx: Transaction, result: Message | None, now: datetime) -> None:
        """Store its submission, and put its deletion into the outbox; leave a message for another challenge where it is."""
        tx.set_fact("polled_at", now.isoformat())
        if result is None:
            return
        if result.challenge_pk not in (None, self.context.configuration.evalai.challenge):
            text = (
                f"The queue contains a message for challenge {result.challenge_pk}, which this worker does not serve. The worker"
                " leaves it there. Check evalai.queue and evalai.challenge."
            )
            tx.raise_alert("queue.foreign", "queue.foreign", text, now=now, happened=True)
            self.foreign = True
            return
        self.context.checkpoint("before message taken")
        facts.take_message(tx, result, now=now)

    def recorded(self, result: Message | None, now: datetime) -> None:
        """Note what the queue returned; a message for another challenge counts as an empty queue."""
        self.context.timetable.done(POLL, now)
        self.session.empty_polls = self.session.empty_polls + 1 if result is None else int(self.foreign)


@dataclass(kw_only=True, eq=False, repr=False)
class DeleteMessage(Call[None]):
    """Delete a message by its newest receipt.

    Attributes:
        pending: The row of the outbox.
    """

    name = "delete"
    records_wait: ClassVar[bool] = True
    pending: OutboxRow

    def perform(self, resource: Client) -> None:
        """Delete the message; doing so twice does no harm."""
        resource.delete_message(self.pending.receipt or "")

    def outcome(self, tx: Transaction, result: None, now: datetime) -> None:
        """Close the row of the outbox."""
        tx.note_pending(self.pending.id, done_at=now)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Schedule the next try, or give the receipt up, which may be unknown by then: its message comes back under a newer one."""
        pending = self.pending
        if pending.tries >= GIVE_UP_TRIES:
            tx.note_pending(pending.id, done_at=now)
        else:
            tx.postpone(pending.id, not_before=self.context.retry_at(now, pending.tries))
