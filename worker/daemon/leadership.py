"""Taking the lead: what a predecessor left, however it ended, becomes this leader's."""

from __future__ import annotations

from datetime import datetime

from worker.runtime.files import FileStore
from worker.state import OutboxKind, Outcome, State, Transaction

STANDBY = "standby:"  # begins the keys of alerts about daemons that stand by
# Begin the keys of alerts that an earlier version may have left, and that nothing else would end.
BYGONE = ("tasks:", "phase:", "disk.reserve@")


def take_over(tx: Transaction, files: FileStore, now: datetime) -> None:
    """Record that nothing of a predecessor goes on; what it had under way is done again, or looked at again where it may be done.

    Args:
        tx: The transaction in which this process becomes the leader.
        files: This machine's stored files; the predecessor may have lived on another one.
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
    for alert in tx.alerts():
        # One that stood by leads now; those that still do tell again what they lack.
        if alert.key.startswith((STANDBY, *BYGONE)):
            tx.resolve_alert(alert.key, now=now)
    tx.release_all()
    tx.request_publish()
