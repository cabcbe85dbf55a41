"""Fetch one file, in a child process that may be killed.

A failed download never fails a submission: it is tried again indefinitely. Only a file that is larger than allowed, or an upload that
was never finished, is its author's fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError, ParticipantError
from scoring.inputs.limits import largest_file
from worker.answers import answers
from worker.challenge.context import Context, seconds
from worker.fetching import uploads
from worker.fetching.fetch_child import FetchOrder, FetchResult
from worker.runtime.acts import NotDue
from worker.runtime.child_acts import SHARED, ChildAct, Died, Limits, OverLimit, fault_key
from worker.runtime.storage import FileStore
from worker.state import ALERT_AFTER_TRIES, Attempt, OutboxKind, Outcome, State, SubmissionRow, Transaction

READ_TIMEOUT_S = 30.0  # seconds without a byte
SETTLES_S = 10.0  # after a message; less if the queue is polled more often


@dataclass(kw_only=True, eq=False, repr=False)
class FetchFile(ChildAct[FetchResult]):
    """Fetch the file of a submission that is to be scored.

    Attributes:
        context: The worker's surroundings.
        files: Where files are stored.
        row: The submission, whose file's address is known.
        deadline_s: Time limit in seconds, which includes the name lookup, connecting and the headers.
    """

    name = "fetch"
    module = "worker.fetching.fetch_child"
    context: Context
    files: FileStore
    row: SubmissionRow
    deadline_s: float

    @property
    def limits(self) -> Limits:
        """Only a time limit: a download needs very little memory, whatever is sent."""
        return Limits(deadline_s=self.deadline_s)

    def order(self) -> FetchOrder:
        """Return what to download, from which hosts, and where to store it."""
        configuration = self.context.configuration
        return {
            "url": self.row.input_file or "",
            "state_dir": str(configuration.state_dir),
            "placeholder": uploads.PLACEHOLDER,
            "max_bytes": largest_file(configuration.submission.max_megabytes),
            "allowed_hosts": [
                urlsplit(configuration.evalai.server).netloc,
                *configuration.evalai.media_hosts,
            ],
            "timeout_s": READ_TIMEOUT_S,
        }

    def _explained(self, error: NeucoError) -> NeucoError:
        """Explain an end for which the child gave no error of its own."""
        if isinstance(error, OverLimit):
            return InfrastructureError(
                f"A submission's file did not arrive within {self.deadline_s:.0f} s.",
                hint="The worker tries again. If this continues, check the network and EvalAI's file store.",
                code="fetch.deadline",
            )
        if isinstance(error, Died):
            return InfrastructureError(
                f"The process that downloads a submission's file ended {error.reason}.",
                hint="The worker tries again. If this continues, check the memory of this machine and the log.",
                code="fetch.died",
            )
        return error

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Open the attempt."""
        if tx.known(self.row.pk).state is not State.ACKNOWLEDGED:
            raise NotDue
        self._attempt = tx.open_attempt(self.row.pk, Attempt.FETCH, now=now)
        self._begun_at = now
        self.folder = self.files.temporary(f"fetch-{self._attempt}")

    def is_due(self, tx: Transaction) -> bool:
        """Return whether the submission still waits for its file, and this attempt is the open one."""
        return tx.known(self.row.pk).state is State.ACKNOWLEDGED and tx.is_open(self._attempt)

    def outcome(self, tx: Transaction, result: FetchResult, now: datetime) -> None:
        """Store the file for scoring, or follow EvalAI's placeholder, which means that an upload is under way or was never finished."""
        if not tx.is_open(self._attempt):
            return
        tx.resolve_alert(f"fetch:{self.row.pk}")
        tx.resolve_faults(self.name, SHARED)
        if result["sha256"] == uploads.PLACEHOLDER:
            self._placeholder(tx, now)
            return
        tx.move(self.row.pk, State.ACKNOWLEDGED, State.FETCHED, file_hash=result["sha256"])
        tx.close_attempt(self._attempt, Outcome.DONE, now=now)

    def _placeholder(self, tx: Transaction, now: datetime) -> None:
        settles = seconds(min(SETTLES_S, self.context.configuration.evalai.poll_every))
        row = tx.known(self.row.pk)
        if error := uploads.follow_placeholder(tx, row, begun_at=self._begun_at, settles=settles, now=now):
            self._reject(tx, error, now, file_hash=uploads.PLACEHOLDER)
        else:
            tx.close_attempt(self._attempt, Outcome.UNFINISHED, now=now)
        self.context.log.info(
            "EvalAI has only a placeholder; the upload is not finished.",
            event_key="fetch.placeholder",
            submission=self.row.pk,
        )

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Reject a file that is too large; after every other failure, try again."""
        if not tx.is_open(self._attempt):
            return
        if isinstance(error, Cancelled):
            tx.close_attempt(self._attempt, Outcome.CANCELLED, now=now)
        elif isinstance(error, ParticipantError):
            self._reject(tx, error, now)
        else:
            self._retry(tx, self._explained(error), now)

    def _reject(self, tx: Transaction, error: ParticipantError, now: datetime, **values: Any) -> None:
        answer = answers.failed(error).to_json()
        if tx.move(self.row.pk, State.ACKNOWLEDGED, State.REJECTED, answer=answer, **values):
            tx.enqueue(OutboxKind.POST, self.row.pk, now=now)
        tx.close_attempt(self._attempt, Outcome.PARTICIPANT, now=now)

    def _retry(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        current = tx.known(self.row.pk)
        tx.close_attempt(self._attempt, Outcome.FAILED, now=now)
        if current.state is not State.ACKNOWLEDGED:  # the submission has ended meanwhile
            return
        # The link has expired; the next reading of the submission brings a fresh one.
        values = {"read_at": None} if error.code == "file.link_expired" else {}
        retry_at = self.context.retry_at(now, current.tries)
        tx.note(self.row.pk, not_before=retry_at, tries=current.tries + 1, **values)
        if isinstance(error, OrganizerError) or current.tries + 1 >= ALERT_AFTER_TRIES:
            tx.report(fault_key(self.name, error, self.row.pk), error, now=now)
