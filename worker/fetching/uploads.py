"""Large uploads: EvalAI lists them from their first moment, with a placeholder of twelve bytes where the file will be.

The participant's parts follow under the same address, which may take an hour or never end; then a message comes. So whether a placeholder
is a fault is decided here: not as long as the listing alone told us of the submission. It then waits for its message, or until the file is
another one when we look again, and it delays nothing else. A message says that the upload is over. If the placeholder is still there when
storage has had time to settle, it is all that was submitted, and its author reads that the upload was not finished.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from scoring.errors import ParticipantError
from worker.state import State, SubmissionRow, Transaction

PLACEHOLDER = hashlib.sha256(b"file_content").hexdigest()
"""Hash of what EvalAI stores until the upload is finished."""
FIRST_LOOK = timedelta(minutes=1)
LONGEST_LOOK = timedelta(hours=6)
OLD = timedelta(days=1)
NAMED = 20  # submissions that an alert names
ALERT = "uploads"


def follow_placeholder(
    tx: Transaction, row: SubmissionRow, *, begun_at: datetime, settles: timedelta, now: datetime
) -> bool:
    """Decide what follows from a fetched placeholder; return whether it is the author's fault.

    Args:
        tx: An open write transaction.
        row: The submission, as it is now.
        begun_at: When fetching it began.
        settles: For how long after a message storage may still show the placeholder.
        now: The time.
    """
    if row.state is not State.ACKNOWLEDGED:
        return False  # ended meanwhile
    messaged_at = tx.messaged_at(row.pk)
    if messaged_at is None:
        tx.move(row.pk, State.ACKNOWLEDGED, State.UPLOADING, not_before=_next_look(row, now))
        return False
    if messaged_at <= now and begun_at < messaged_at + settles:
        tx.note(row.pk, not_before=messaged_at + settles)
        return False
    if row.posted is not None and row.remote_status == "failed":  # EvalAI shows this answer already
        tx.move(
            row.pk,
            State.ACKNOWLEDGED,
            State.FAILED,
            answer=row.posted,
            file_hash=PLACEHOLDER,
            read_at=now,
        )
        return False
    return True


def unfinished() -> ParticipantError:
    """Say what is wrong with a placeholder that is all there is."""
    return ParticipantError(
        "The upload was not finished: instead of your file, EvalAI has its own placeholder, the text file_content.",
        cure="Submit the file again, and wait until the upload has finished.",
        code="file.upload_unfinished",
    )


def take_message(tx: Transaction, row: SubmissionRow, *, now: datetime) -> bool:
    """Follow a message about a submission that was seen as a placeholder: its file is fetched again.

    Returns:
        Whether the message may be deleted. One that comes while the answer is on its way waits in the queue until the answer has left.
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
        tx.log("upload finished later", actor="evalai", now=now, submission=row.pk)
    return row.state is not State.REJECTED


def look_again(tx: Transaction, due: list[SubmissionRow]) -> None:
    """Let files be fetched again that were placeholders: a message may be lost, or never be sent."""
    for row in due:
        tx.move(row.pk, State.UPLOADING, State.ACKNOWLEDGED)


def is_due(row: SubmissionRow, now: datetime) -> bool:
    """Return whether it is time to look again; a moment too far off is from before the clock was set back."""
    return row.not_before is None or not now < row.not_before <= now + LONGEST_LOOK


def _next_look(row: SubmissionRow, now: datetime) -> datetime:
    """Return when to look again: after half the time that we have known it, so that an abandoned upload costs next to nothing."""
    return now + min(LONGEST_LOOK, max(FIRST_LOOK, (now - row.first_seen_at) / 2))


def tell_of_old(tx: Transaction, *, now: datetime) -> None:
    """Tell the organizer of uploads that have not been finished for a day, in one alert, and no more when they are over."""
    old = [
        row
        for row in tx.submissions([State.UPLOADING])
        if row.submitted_at is not None and now - row.submitted_at > OLD
    ]
    if not old:
        tx.resolve_alert(ALERT, now=now)
        return
    named = ", ".join(str(row.pk) for row in old[:NAMED])
    uploads_are = "1 large upload is" if len(old) == 1 else f"{len(old)} large uploads are"
    text = (
        f"{uploads_are} not finished after a day: {named}. EvalAI still has a placeholder instead of the file. "
        "Ask the team to submit again, and cancel the submission at EvalAI. Other submissions are not delayed."
    )
    tx.raise_alert(ALERT, "upload.unfinished", text, now=now)
