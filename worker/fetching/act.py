"""Fetch one file: streamed, limited in size, hashed, and stored.

A failed download never fails a submission: it is tried again indefinitely. Only a file that is larger than allowed, or an upload that
was never finished, is its author's fault.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scoring.errors import InfrastructureError, NeucoError, OrganizerError, ParticipantError
from scoring.inputs.limits import largest_file
from scoring.printable import printable
from worker.answers import answers
from worker.challenge.context import Context, seconds
from worker.fetching import uploads
from worker.fetching.download import download
from worker.runtime.acts import SHARED, Act, NotDue, fault_key
from worker.runtime.storage import FileStore
from worker.state import ALERT_AFTER_TRIES, State, SubmissionRow, Transaction

READ_TIMEOUT_S = 30.0  # seconds without a byte
SETTLES_S = 10.0  # after a message; less if the queue is polled more often
UNFETCHED = (State.ACKNOWLEDGED, State.UPLOADING)


@dataclass(kw_only=True, eq=False, repr=False)
class FetchFile(Act[FileStore, str]):
    """Fetch the file of a submission that is to be scored; the result is its SHA-256.

    Attributes:
        context: The worker's surroundings.
        row: The submission, whose file's address is known.
    """

    name = "fetch"
    what: ClassVar[str] = "The download of a submission's file"
    time_out_s = 900.0  # with the name lookup, connecting and the headers
    context: Context
    row: SubmissionRow
    _given_up: threading.Event = field(init=False, default_factory=threading.Event)
    _folder: str = field(init=False, default_factory=lambda: f"fetch-{secrets.token_hex(8)}")

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Note when it begins."""
        if tx.known(self.row.pk).state not in UNFETCHED:
            raise NotDue
        self._begun_at = now

    def perform(self, resource: FileStore) -> str:
        """Download the file from an allowed host; keep it, unless it is EvalAI's placeholder, or EvalAI has stored none yet."""
        if not self.row.input_file:
            return uploads.PLACEHOLDER
        configuration = self.context.configuration
        folder = resource.temporary(self._folder)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sha256 = download(
                self.row.input_file,
                folder / "file",
                max_bytes=largest_file(configuration.submission.max_megabytes),
                allowed_hosts=[
                    urlsplit(configuration.evalai.server).netloc,
                    *configuration.evalai.media_hosts,
                ],
                timeout_s=READ_TIMEOUT_S,
                given_up=self._given_up,
            )
            if sha256 != uploads.PLACEHOLDER:
                resource.keep(folder / "file", sha256)
        except OSError as problem:
            raise InfrastructureError(
                f"A submission's file cannot be stored: {problem.strerror}.",
                hint="Check the free space and the permissions of the state directory. The worker tries again.",
                code="disk.write",
            ) from problem
        finally:  # on a full disk, only this makes room to record the error
            shutil.rmtree(folder, ignore_errors=True)
        return sha256

    def give_up(self, resource: FileStore) -> None:
        """Let its thread end with the next byte that arrives, and make room."""
        self._given_up.set()
        shutil.rmtree(resource.temporary(self._folder), ignore_errors=True)

    def outcome(self, tx: Transaction, result: str, now: datetime) -> None:
        """Store the file for scoring, or follow EvalAI's placeholder, which means that an upload is under way or was never finished."""
        tx.move(self.row.pk, State.UPLOADING, State.ACKNOWLEDGED)
        tx.resolve_alert(f"fetch:{self.row.pk}")
        tx.resolve_faults(self.name, SHARED)
        if result == uploads.PLACEHOLDER:
            self._placeholder(tx, now)
        else:
            tx.move(self.row.pk, State.ACKNOWLEDGED, State.FETCHED, file_hash=result)

    def _placeholder(self, tx: Transaction, now: datetime) -> None:
        settles = seconds(min(SETTLES_S, self.context.configuration.evalai.poll_every))
        row = tx.known(self.row.pk)
        if error := uploads.follow_placeholder(tx, row, begun_at=self._begun_at, settles=settles, now=now):
            self._reject(tx, error, now, file_hash=uploads.PLACEHOLDER)
        self.context.log.info(
            "EvalAI has only a placeholder; the upload is not finished.",
            event_key="fetch.placeholder",
            submission=self.row.pk,
        )

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Reject a file that is too large; after every other failure, try again."""
        if isinstance(error, ParticipantError):
            tx.move(self.row.pk, State.UPLOADING, State.ACKNOWLEDGED)
            self._reject(tx, error, now)
        else:
            self._retry(tx, error, now)

    def _reject(self, tx: Transaction, error: ParticipantError, now: datetime, **values: Any) -> None:
        answer = answers.failed(error).to_json()
        tx.move(self.row.pk, State.ACKNOWLEDGED, State.REJECTED, answer=answer, decided_at=now, **values)

    def _retry(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        current = tx.known(self.row.pk)
        if current.state not in UNFETCHED:  # the submission has ended meanwhile
            return
        # The link has expired; the next reading of the submission brings a fresh one.
        values = {"read_at": None} if error.code == "file.link_expired" else {}
        retry_at = self.context.retry_at(now, current.tries)
        tx.note(self.row.pk, not_before=retry_at, tries=current.tries + 1, **values)
        if isinstance(error, OrganizerError) or current.tries + 1 >= ALERT_AFTER_TRIES:
            key, sentence = fault_key(self.name, error, self.row.pk), error.sentence
            if key == f"{self.name}:{self.row.pk}":
                sentence = f"Submission {self.row.pk} of team {printable(current.team or '')!r}: {sentence}"
            tx.report(key, OrganizerError(sentence, hint=error.hint, code=error.code), now=now)
