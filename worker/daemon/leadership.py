"""Becoming the leader: take over what the previous leader left, however it ended."""

from __future__ import annotations

from datetime import datetime

from worker.runtime.files import FileStore
from worker.state import OutboxKind, Outcome, State, Transaction


def take_over(tx: Transaction, files: FileStore, now: datetime) -> None:
    """Record that the previous leader's work has ended; it is done again, or checked again where EvalAI may already have it.

    Args:
        tx: The transaction in which this process becomes the leader.
        files: This machine's stored files; the previous leader may have run on another machine.
        now: The time.
    """
    for attempt in tx.attempts(open_only=True):
        tx.close_attempt(attempt.id, Outcome.DEAD, now=now, reason="found open by the next leader")
    for row in tx.submissions([State.SCORING]):
        tx.move(row.pk, State.SCORING, State.FETCHED)
    for row in tx.submissions([State.FETCHED]):
        if row.file_hash is None or files.find(row.file_hash) is None:
            held = {"hold": row.hold, "hold_reason": row.hold_reason}
            tx.move(row.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None, **held)
    for owed in tx.owed(OutboxKind.POST):
        if owed.sent_at is not None:  # EvalAI may have the answer
            tx.note(owed.submission, read_at=None)
    tx.release_all()
    tx.request_publish()
