"""Large uploads: EvalAI lists them from their start, with a placeholder of twelve bytes instead of the file.

The participant's parts follow under the same address, which may take an hour or never end; then a message comes. This module decides
whether a placeholder is the author's fault. It is not, as long as only the listing has shown the submission. The submission then waits
for its message, or until another look finds the file, and delays nothing else. A message says that the upload is over. If the
placeholder is still there after storage has had time to settle, the upload was not finished, and the author is told so.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from scoring.errors import ParticipantError
from scoring.printable import count_of, name_some
from worker.state import LONGEST_LOOK, State, SubmissionRow, Transaction

PLACEHOLDER = hashlib.sha256(b"file_content").hexdigest()
"""Hash of what EvalAI stores until the upload is finished."""
FIRST_LOOK = timedelta(minutes=1)
OLD = timedelta(days=1)
NAMED = 20  # submissions that an alert names
ALERT = "uploads"


def follow_placeholder(
    tx: Transaction, row: SubmissionRow, *, begun_at: datetime, settles: timedelta, now: datetime
) -> ParticipantError | None:
    """Decide what follows from a fetched placeholder; return the author's fault, None if it is not theirs.

    Args:
        tx: An open write transaction.
        row: The submission as it is now.
        begun_at: When fetching began.
        settles: How long after a message the storage may still show the placeholder.
        now: The time.
    """
    if row.state is not State.ACKNOWLEDGED or row.disputed:
        return None  # the submission has ended meanwhile, or a person decides first
    messaged_at = row.messaged_at
    if messaged_at is None:
        tx.move(row.pk, State.ACKNOWLEDGED, State.UPLOADING, not_before=_next_look(row, now))
        return None
    if messaged_at <= now and begun_at < messaged_at + settles:
        tx.note(row.pk, not_before=messaged_at + settles)
        return None
    if row.posted is not None and row.remote_status == "failed":  # EvalAI shows this answer already
        tx.move(
            row.pk,
            State.ACKNOWLEDGED,
            State.FAILED,
            answer=row.posted,
            file_hash=PLACEHOLDER,
            read_at=now,
        )
        return None
    return ParticipantError(
        "The upload was not finished: instead of your file, EvalAI has its own placeholder, the word “file_content”.",
        hint="Submit the file again, and wait until the upload has finished.",
        code="file.upload_unfinished",
    )


def take_message(tx: Transaction, row: SubmissionRow) -> bool:
    """Follow a message about a submission that was seen as a placeholder: its file is fetched again.

    Returns:
        Whether the message may be deleted. A message that comes while the answer is being sent stays in the queue until the answer has
            left.
    """
    if row.state is State.UPLOADING:
        tx.move(row.pk, State.UPLOADING, State.ACKNOWLEDGED)
    if row.file_hash != PLACEHOLDER:
        return True
    if row.state is State.FAILED:
        tx.move(
            row.pk,
            State.FAILED,
            State.ACKNOWLEDGED,
            running_at=None,
            answer=None,
            file_hash=None,
            read_at=None,
        )
    return row.state is not State.REJECTED


def _next_look(row: SubmissionRow, now: datetime) -> datetime:
    """Return when to look again: after half the time since it was first seen, so that an abandoned upload costs very little."""
    return now + min(LONGEST_LOOK, max(FIRST_LOOK, (now - row.first_seen_at) / 2))


def tell_of_old(tx: Transaction, *, now: datetime) -> None:
    """Raise one alert about all uploads that are unfinished after a day; resolve it when none is left."""
    old = [
        row
        for row in tx.submissions([State.UPLOADING])
        if row.submitted_at is not None and now - row.submitted_at > OLD
    ]
    named = name_some([str(row.pk) for row in old], NAMED)
    text = (
        f"{count_of(len(old), 'large upload is', 'large uploads are')} not finished after a day: {named}. EvalAI still has a placeholder"
        " instead of the file. Ask each team to submit again, and cancel the old submission at EvalAI as a host. Other submissions are not"
        " delayed."
    )
    tx.set_alert(ALERT, "upload.unfinished", text if old else None, now=now)
