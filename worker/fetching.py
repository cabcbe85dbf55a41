"""Fetching: the one file that is being downloaded, in a child process that may be killed.

A failed download never fails a submission: it is tried again, for ever. Only a file that is larger than allowed is its author's fault.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from scoring.errors import InfrastructureError, NeucoError, OrganizerError, ParticipantError
from worker import answers, uploads
from worker.children import LOOK_S, Child
from worker.context import Context, seconds
from worker.endings import no_child
from worker.files import FileStore
from worker.limits import largest_file
from worker.state import Tracked, Transaction
from worker.states import Attempt, Errand, Outcome, State
from worker.storage import below_reserve
from worker.turns import next_in_turn

AHEAD = 2  # files fetched before they can be scored; more would only fill the disk
DEADLINE_S = 900.0
QUIET_S = 30.0  # without a byte
SETTLES_S = 10.0  # after a message; less where the queue is looked at more often than that


class Fetching:
    """Chooses the next file, starts its child, looks after it, and records how it ended.

    Args:
        context: The worker's surroundings.
        files: Where files are stored.
        deadline_s: Most time for one file, from the start of its child: looking up a name, connecting and headers are part of it.
    """

    def __init__(self, context: Context, files: FileStore, *, deadline_s: float = DEADLINE_S) -> None:
        self._context = context
        self._files = files
        self._deadline_s = deadline_s
        self._child: Child | None = None
        self._submission: Tracked | None = None
        self._attempt = 0
        self._begun_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._spent_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether a download is under way."""
        return self._child is not None

    def step(self, now: datetime) -> bool:
        """Look after the download under way, or start the next one."""
        if self._child is not None:
            return self._look_after(self._child, now)
        self._look_again(now)
        known = self._next(now)
        if known is None:
            return False
        reserve = self._context.configuration.submission.disk_reserve_gigabytes
        if error := below_reserve(self._files.free_bytes(), reserve):
            self._context.trouble(self._context.sharing.here("disk.reserve"), error, now=now)
            return False
        self._context.over(self._context.sharing.here("disk.reserve"), now=now)
        self._start(known, now)
        return True

    def stop(self, now: datetime) -> None:
        """End the download because the worker ends."""
        if self._child is not None:
            with self._context.store.write() as tx:
                tx.close_attempt(self._attempt, Outcome.SHUTDOWN, now=now)
            self._forget()

    def _look_again(self, now: datetime) -> None:
        with self._context.store.read() as tx:
            due = [
                known
                for known in tx.submissions([State.UPLOADING])
                if known.hold is None and uploads.is_due(known, now)
            ]
        if due:
            with self._context.store.write() as tx:
                uploads.look_again(tx, due)

    def _next(self, now: datetime) -> Tracked | None:
        grid = seconds(self._context.configuration.submission.answer_grid)
        with self._context.store.read() as tx:
            acknowledged = tx.submissions([State.ACKNOWLEDGED])
            if not acknowledged:
                return None
            # One that waits for a person, its next try or its team's last answer must not keep others from being fetched.
            later = answers.unreleased(tx, now, grid=grid)
            fetched = self._context.sharing.stored(tx.submissions([State.FETCHED]))
            ready = [known for known in fetched if known.hold is None and not known.waits(now)]
            if sum(known.team_key not in later for known in ready) >= AHEAD:
                return None
            waiting = [
                known
                for known in acknowledged
                if not known.waits(now)
                and known.team_key not in later
                and known.phase not in self._context.behind
                and known.read_at is not None  # else its address is stale: the intake reads it again
                and not (known.hold or "").startswith("facts.")
            ]
            return next_in_turn(tx, self._context.sharing.fetchable(tx, waiting))

    def _start(self, known: Tracked, now: datetime) -> None:
        configuration = self._context.configuration
        with self._context.store.write() as tx:
            attempt = self._context.sharing.begin(tx, known.pk, Attempt.FETCH, now)
        if attempt is None:  # another worker was quicker
            return
        self._attempt = attempt
        folder = self._files.temporary(f"fetch-{self._attempt}")
        server = urlsplit(configuration.evalai.server).netloc
        self._submission, self._begun_at, self._looked_at, self._spent_s = known, now, now, 0.0
        self._context.checkpoint("before child fetch")
        try:
            self._child = Child(
                "worker.fetch_child",
                {
                    "url": known.input_file,
                    "destination": str(folder / "file"),
                    "max_bytes": largest_file(configuration.submission.max_megabytes),
                    "allowed_hosts": [server, *configuration.evalai.media_hosts],
                    "timeout_s": QUIET_S,
                },
                folder=folder,
                wake=self._context.wake,
            )
        except OSError as problem:
            self._failed(no_child(problem), now)
            return
        self._context.checkpoint("after child fetch")

    def _look_after(self, child: Child, now: datetime) -> bool:
        for message in child.messages():
            if message.get("kind") == "done":
                self._stored(message["sha256"], int(message["size"]), now)
                return True
            if message.get("kind") == "error":
                kinds: dict[str, type[NeucoError]] = {
                    "participant": ParticipantError,
                    "organizer": OrganizerError,
                }
                kind = kinds.get(str(message.get("family")), InfrastructureError)
                self._failed(
                    kind(
                        str(message.get("sentence")),
                        cure=str(message.get("cure")),
                        code=str(message.get("code")),
                    ),
                    now,
                )
                return True
        if child.ended() is not None and not child.pending:
            error = InfrastructureError(
                "The process that downloads a submission's file died.",
                cure="It is tried again; if it stays like this, look at memory and at the log.",
                code="fetch.died",
            )
            self._failed(error, now)
            return True
        if self._looked_at is not None:
            self._spent_s += min(max((now - self._looked_at).total_seconds(), 0.0), LOOK_S)
        self._looked_at = now
        if self._spent_s > self._deadline_s:
            error = InfrastructureError(
                f"A submission's file did not arrive within {self._deadline_s:.0f} s.",
                cure="It is tried again; if it stays like this, look at the network and at EvalAI's file store.",
                code="fetch.deadline",
            )
            self._failed(error, now)
            return True
        return False

    def _stored(self, file_hash: str, size: int, now: datetime) -> None:
        known, child = self._submission, self._child
        if known is None or child is None:
            return
        if file_hash == uploads.PLACEHOLDER:
            self._placeholder(now)
            return
        self._context.checkpoint("before file kept")
        fetched = child.folder / "file"
        try:
            if fetched.exists():  # else it was kept, and the database could not be written then
                self._files.keep(fetched, file_hash)
        except OSError as problem:
            cure = "Look at space and permissions of the state directory; it is tried again."
            sentence = f"A fetched file could not be kept ({problem.strerror})."
            self._failed(InfrastructureError(sentence, cure=cure, code="disk.write"), now)
            return
        self._context.checkpoint("after file kept")
        with self._context.store.write() as tx:
            if not self._context.sharing.holds(tx, self._attempt):
                self._forget()
                return
            tx.move(known.pk, State.ACKNOWLEDGED, State.FETCHED, file_hash=file_hash, file_bytes=size)
            tx.close_attempt(self._attempt, Outcome.DONE, now=now)
            tx.resolve_alert(f"fetch:{known.pk}", now=now)
        self._forget()

    def _placeholder(self, now: datetime) -> None:
        """Follow a file that is EvalAI's placeholder: an upload that is under way, or one that was never finished."""
        if self._submission is None or self._begun_at is None:
            return
        pk = self._submission.pk
        settles = seconds(min(SETTLES_S, self._context.configuration.evalai.poll_every))
        with self._context.store.write() as tx:
            current = tx.get(pk)
            if current is None or not self._context.sharing.holds(tx, self._attempt):
                self._forget()
                return
            if uploads.follow_placeholder(tx, current, begun_at=self._begun_at, settles=settles, now=now):
                self._reject(tx, current, uploads.unfinished(), now, file_hash=uploads.PLACEHOLDER)
            else:
                tx.close_attempt(self._attempt, Outcome.UNFINISHED, now=now)
            tx.resolve_alert(f"fetch:{pk}", now=now)
        self._context.log.info(
            "EvalAI holds a placeholder instead of the file.", event_key="fetch.placeholder", submission=pk
        )
        self._forget()

    def _reject(
        self, tx: Transaction, known: Tracked, error: ParticipantError, now: datetime, **values: Any
    ) -> None:
        answer = answers.failed(error).to_json()
        if tx.move(known.pk, State.ACKNOWLEDGED, State.REJECTED, answer=answer, **values):
            tx.owe(Errand.POST, known.pk, now=now)
        tx.close_attempt(self._attempt, Outcome.PARTICIPANT, now=now, reason=error.code)

    def _failed(self, error: NeucoError, now: datetime) -> None:
        known = self._submission
        if known is None:
            return
        with self._context.store.write() as tx:
            if not self._context.sharing.holds(tx, self._attempt):
                self._forget()
                return
            if isinstance(error, ParticipantError):
                self._reject(tx, known, error, now)
            else:
                retry_at = self._context.retry_at(now, known.tries)
                # An expired link: the next reading of the submission brings a fresh one.
                values = {"read_at": None} if error.code == "file.link_expired" else {}
                tx.note(known.pk, not_before=retry_at, tries=known.tries + 1, **values)
                outcome = Outcome.ORGANIZER if isinstance(error, OrganizerError) else Outcome.INFRASTRUCTURE
                tx.close_attempt(self._attempt, outcome, now=now, reason=f"{error.code}: {error.sentence}")
        if isinstance(error, OrganizerError) or (
            not isinstance(error, ParticipantError) and known.tries >= 2
        ):
            self._context.trouble(f"fetch:{known.pk}", error, now=now)
        self._forget()

    def _forget(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child, self._submission, self._looked_at = None, None, None
