"""Fetch a stored file once more: a rescore needs it, but it was removed or is on another machine.

This happens only on request and changes nothing in the submission: the result is stored with the request.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from scoring.errors import Cancelled, NeucoError, ParticipantError
from worker.fetching.act import Download
from worker.fetching.fetch_child import Order, Result
from worker.runtime import NotDue
from worker.runtime.files import FileStore
from worker.state import COUNTED, State, SubmissionRow, Transaction, WantedFile

MOST_TRIES = 5
ANOTHER = "EvalAI gives another file now than the one that was scored"


class FetchAgain(Download):
    """Fetch a file that is wanted again, and keep it only if it is still the one that was scored."""

    name = "fetch_again"

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record nothing: the request stays open until its end is recorded."""
        if not self.is_due(tx):
            raise NotDue

    def order(self) -> Order:
        """Return the same order as for any file, but allow the size of the scored file, even if the limit was lowered since."""
        order = super().order()
        return {**order, "max_bytes": max(order["max_bytes"], self._row.file_bytes or 0)}

    @property
    def folder(self) -> Path:
        """The folder, named after the submission."""
        return self._files.temporary(f"fetch-again-{self.pk}")

    def is_due(self, tx: Transaction) -> bool:
        """Return whether the request is still open."""
        wanted = tx.wanted_file(self.pk)
        return wanted is not None and wanted.open and wanted.file_hash == self._only

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Record that the file is stored, or that it is another file now."""
        if result["sha256"] == self._only:
            tx.note_wanted(self.pk, stored=True)
        else:
            tx.note_wanted(self.pk, failure=ANOTHER)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Schedule another try; after the last one, record that the file cannot be fetched."""
        wanted = tx.wanted_file(self.pk)
        if wanted is None or isinstance(error, Cancelled):
            return
        error, tries = self.explained(error), wanted.tries + 1
        if isinstance(error, ParticipantError) or tries >= MOST_TRIES:
            tx.note_wanted(self.pk, tries=tries, failure=error.sentence.rstrip("."))
            return
        retry_at = self._context.retry_at(now, wanted.tries)
        tx.note_wanted(self.pk, tries=tries, not_before=retry_at.isoformat())
        if error.code == "file.link_expired":
            tx.note(self.pk, read_at=None)


def ended_requests(tx: Transaction, files: FileStore) -> dict[int, str | None]:
    """Return the requests that need no download: submission to why its file cannot be fetched, None if the file is stored."""
    ended: dict[int, str | None] = {}
    for wanted in tx.wanted_files(open_only=True):
        here = files.find(wanted.file_hash) is not None
        fault = None if here else _lost(tx.get(wanted.submission), wanted)
        if here or fault:
            ended[wanted.submission] = fault
    return ended


def _lost(row: SubmissionRow | None, wanted: WantedFile) -> str | None:
    """Return why it is pointless to ask EvalAI for a file, None if it is not."""
    if row is None or row.deleted:
        return "EvalAI has deleted the submission"
    if row.state not in COUNTED | {State.SCORED} or row.file_hash != wanted.file_hash:
        return "the submission does not count anymore"
    return None
