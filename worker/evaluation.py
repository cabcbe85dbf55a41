"""Evaluation: the one submission that is being scored, in a child process that may be killed.

The daemon decides what happens at each end of the child: its death by signal, deadline, memory or exception is a typed outcome. Limits hit
while *reading* are the participant's, because a file can be made to hit them; limits hit while *scoring* are infrastructure, because after
validation the cost depends on the shape alone.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import datetime
from typing import Any

from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError, ParticipantError
from scoring.quality import mean_quality
from scoring.scorecard import Scorecard
from worker import answers
from worker.challenge import PhaseSetup
from worker.children import Child
from worker.context import Context
from worker.evaluate_child import order_for
from worker.fairness import receipts
from worker.files import FileStore
from worker.state import Tracked, Transaction
from worker.states import Attempt, Errand, Outcome, State

GIGABYTE = 1024**3
CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
CRASHES_TO_BLAME = (
    3  # a library that a file makes crash once may be bad luck; three times in a row is the file
)
LOOK_S = 5.0  # the most that counts between two looks at a child: a clock that jumps is nobody's fault


class Evaluation:
    """Chooses the next submission, starts its child, looks after it, and records how it ended.

    Args:
        context: The worker's surroundings.
        files: Stored submission files.
    """

    def __init__(self, context: Context, files: FileStore) -> None:
        self._context = context
        self._files = files
        self._child: Child | None = None
        self._submission: Tracked | None = None
        self._attempt = 0
        self._setup: PhaseSetup | None = None
        self._looked_at: datetime | None = None
        self._spent_s = 0.0
        self._stage = "starting"
        self._read: dict[str, Any] | None = None
        self.folds_done = 0

    @property
    def busy(self) -> bool:
        """Whether a child is at work."""
        return self._child is not None

    @property
    def submission(self) -> int | None:
        """The submission that is being scored."""
        return None if self._submission is None else self._submission.pk

    @property
    def stage(self) -> str:
        """How far the child is: starting, reading or scoring."""
        return self._stage

    def head(self, now: datetime) -> int | None:
        """Choose what is scored next: round-robin between teams, oldest first within a team.

        Ten files of one team do not hold up another team's first.
        """
        with self._context.store.read() as tx:
            ready = [
                known
                for known in tx.submissions([State.FETCHED, State.SCORING])
                if not known.waits(now) and not _held(known)
            ]
            ready = self._context.sharing.scorable(tx, ready)
            turns = tx.last_turns()
        started = [known for known in ready if known.state is State.SCORING]
        if started:
            return started[0].pk
        if not ready:
            return None
        beginning = datetime.min.replace(tzinfo=now.tzinfo)
        return min(
            ready, key=lambda known: (turns.get(known.team_key or 0, beginning), known.submitted_at, known.pk)
        ).pk

    def start(self, pk: int, now: datetime) -> bool:
        """Open an attempt and start the child for a submission that EvalAI shows as running."""
        configuration = self._context.configuration
        with self._context.store.read() as tx:
            known = tx.get(pk)
        if (
            known is None
            or known.state is not State.SCORING
            or known.phase is None
            or known.file_hash is None
        ):
            return False
        file = self._files.find(known.file_hash)
        if file is None:
            with self._context.store.write() as tx:
                tx.move(pk, State.SCORING, State.FETCHED)
                tx.move(pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
            return True
        setup = self._context.phases[known.phase]
        with self._context.store.write() as tx:
            attempt = self._context.sharing.begin(tx, pk, Attempt.EVALUATE, now)
        if attempt is None:  # another worker took it over
            return False
        self._attempt = attempt
        self._submission, self._setup, self._stage, self._read = known, setup, "starting", None
        self._looked_at, self._spent_s, self.folds_done = now, 0.0, 0
        self._context.checkpoint("before child evaluate")
        try:
            self._child = Child(
                "worker.evaluate_child",
                order_for(setup, configuration, file),
                folder=self._files.temporary(f"evaluate-{self._attempt}"),
                wake=self._context.wake,
            )
        except OSError as problem:
            self._end((Outcome.INFRASTRUCTURE, no_child(problem)), now)
            return True
        self._context.checkpoint("after child evaluate")
        self._context.log.info(
            "Scoring began.", event_key="evaluate.start", submission=pk, attempt=self._attempt
        )
        return True

    def step(self, now: datetime) -> bool:
        """Look after the child: take its messages, enforce its limits, record its end."""
        child, known = self._child, self._submission
        if child is None or known is None or self._looked_at is None:
            return False
        self._spent_s += min(max((now - self._looked_at).total_seconds(), 0.0), LOOK_S)
        self._looked_at = now
        limits = self._context.configuration.submission
        moved = False
        while (message := child.receive()) is not None:
            moved = True
            if self._take(message, now):
                return True
        if (status := child.ended()) is not None and not child.pending:
            self._end(self._death(status), now)
            return True
        with self._context.store.read() as tx:
            current = tx.get(known.pk)
            ours = self._context.sharing.holds(tx, self._attempt)
        if current is None or current.state is not State.SCORING or not ours:
            self._end((Outcome.CANCELLED, Cancelled("The submission was cancelled.")), now)
            return True
        if self._spent_s > limits.deadline:
            self._end((Outcome.DEADLINE, self._limit_hit("time", "deadline")), now)
            return True
        if child.memory_bytes() > limits.memory_gigabytes * GIGABYTE:
            self._end((Outcome.MEMORY, self._limit_hit("memory", "memory")), now)
            return True
        return moved

    def stop(self, now: datetime) -> None:
        """End the child because the worker ends; the submission is scored anew after the next start."""
        if self._child is not None:
            self._end((Outcome.SHUTDOWN, Cancelled("The worker was stopped.")), now)

    # what the child says

    def _take(self, message: dict[str, Any], now: datetime) -> bool:
        """Take one message; tell whether the evaluation is over."""
        kind = message.get("kind")
        if kind == "stage":
            self._stage = str(message.get("stage"))
        elif kind == "progress":
            self.folds_done += int(message.get("folds", 0))
        elif kind == "read":
            self._read = message
            self._reply_missing(now)
        elif kind == "done":
            self._finish(message, now)
            return True
        elif kind == "error":
            outcome, error = _typed(message)
            if outcome is Outcome.MEMORY:
                error = self._limit_hit("memory", "memory")
            self._end((outcome, error), now)
            return True
        return False

    def _reply_missing(self, now: datetime) -> None:
        if self._child is None or self._submission is None or self._read is None or self._setup is None:
            return
        setup = self._setup  # as it was at the start: a reload meanwhile must not mix two protocols
        with self._context.store.write() as tx:
            tx.note(self._submission.pk, content_hash=self._read["content_hash"])
            missing = missing_tasks(tx, self._read["content_hash"], setup.protocol.hash, dict(setup.tasks))
        self._child.send({"missing": missing})

    def _finish(self, message: dict[str, Any], now: datetime) -> None:
        """Make the result durable: cells, answer and its place in the outbox, in one transaction."""
        known, read, setup = self._submission, self._read, self._setup
        if known is None or read is None or setup is None:
            self._end(
                (Outcome.INFRASTRUCTURE, InfrastructureError("The child said nothing of the file.")), now
            )
            return
        configuration = self._context.configuration
        self._context.checkpoint("before result stored")
        with self._context.store.write() as tx:
            if not self._context.sharing.holds(tx, self._attempt):
                self._forget()
                return
            if "scorecard" in message:
                card = Scorecard.from_json(message["scorecard"])
                provenance = {
                    "versions": card.versions,
                    "machine": card.machine,
                    "remarks": list(card.remarks),
                    "seconds": card.seconds,
                    "peak_memory_bytes": card.peak_memory_bytes,
                    "worker": self._context.name,
                }
                tx.save_cells(
                    read["content_hash"],
                    setup.protocol.hash,
                    setup.codename,
                    card.tasks,
                    provenance=provenance,
                    now=now,
                )
            q_mean = row_mean_q(tx, read["content_hash"], setup.protocol.hash, dict(setup.tasks))
            if q_mean is None:
                raise RuntimeError("the child ended but cells are missing")
            receipt = give_receipt(tx, known.pk, setup, read["content_hash"], now=now)
            answer = answers.finished(
                q_mean,
                decimals=configuration.leaderboard.decimals,
                notes=tuple(str(note) for note in read.get("notes", ())),
                zarr_suffix_removed=bool(read.get("zarr_suffix_removed")),
                receipt=receipt,
            )
            self._owe(tx, known, State.SCORED, answer, now, q_mean=q_mean, scored_at=now)
            self._close(tx, Outcome.DONE, "", now)
        self._context.checkpoint("after result stored")
        self._context.log.info(
            "Scored.", event_key="evaluate.done", submission=known.pk, attempt=self._attempt
        )
        self._forget()

    def _owe(
        self,
        tx: Transaction,
        known: Tracked,
        target: State,
        answer: answers.Answer,
        now: datetime,
        **values: Any,
    ) -> None:
        if tx.move(known.pk, State.SCORING, target, answer=answer.to_json(), **values):
            current = tx.get(known.pk)
            grid = self._context.configuration.submission.answer_grid
            release = answers.release_at(now, running_at=current.running_at if current else None, grid_s=grid)
            tx.owe(Errand.POST, known.pk, now=now, not_before=release)
            tx.resolve_alert(f"hold:{known.pk}", now=now)
            tx.resolve_alert(f"evaluate:{known.pk}", now=now)

    # how it ends otherwise

    def _limit_hit(self, what: str, code: str) -> NeucoError:
        """Blame a limit: on the file while it is read, on us afterwards."""
        if self._stage == "reading":
            return ParticipantError(
                f"Reading the file took more {what} than a submission may use.",
                cure="Check that it holds one row per id and the announced number of columns, and nothing else.",
                code=f"file.{code}",
            )
        return InfrastructureError(
            f"Scoring submission {self.submission} hit the {what} limit in stage {self._stage!r}.",
            cure=f"Raise submission.{'deadline' if code == 'deadline' else 'memory_gigabytes'}, or use a larger machine.",
            code=f"evaluate.{code}",
        )

    def _death(self, status: int) -> tuple[Outcome, NeucoError]:
        """Say how the child died that did not say it itself; its stderr goes to the log, never out."""
        errors = self._child.errors() if self._child is not None else ""
        if errors:
            self._context.log.error(
                "The evaluation's process failed.",
                event_key="evaluate.stderr",
                submission=self.submission,
                stderr=errors[-2000:],
            )
        reason = f"by signal {-status}" if status < 0 else f"with exit status {status}"
        outcome = Outcome.SIGNAL if status < 0 else Outcome.INFRASTRUCTURE
        if -status in CRASHES and self._stage == "reading" and self._crashes() >= CRASHES_TO_BLAME - 1:
            return outcome, ParticipantError(
                "The file cannot be read: it breaks the reader every time.",
                cure="Write it anew with a common library, or send it as CSV.",
                code="file.breaks_reader",
            )
        error = InfrastructureError(
            f"The process that evaluated submission {self.submission} ended {reason} in stage {self._stage!r}.",
            cure="See the log; it is tried again.",
            code="evaluate.died",
        )
        return outcome, error

    def _crashes(self) -> int:
        """Count the earlier attempts of this submission that a signal ended."""
        with self._context.store.read() as tx:
            tried = tx.attempts(pk=self.submission)
        return sum(attempt["outcome"] == Outcome.SIGNAL for attempt in tried)

    def _end(self, ending: tuple[Outcome, NeucoError], now: datetime) -> None:
        outcome, error = ending
        known = self._submission
        if known is None:
            return
        self._context.checkpoint("before attempt ends")
        with self._context.store.write() as tx:
            if not self._context.sharing.holds(tx, self._attempt):
                pass  # another worker has taken it over: what becomes of it is that one's affair
            elif isinstance(error, ParticipantError):
                self._owe(tx, known, State.REJECTED, answers.failed(error), now)
            else:
                current = tx.get(known.pk)
                if current is not None and current.state is State.SCORING:
                    give_back(
                        tx,
                        current,
                        error,
                        outcome,
                        retry_at=self._context.retry_at(now, known.tries),
                    )
            self._close(tx, outcome, f"{error.code}: {error.sentence}", now)
        if outcome not in (Outcome.CANCELLED, Outcome.SHUTDOWN, Outcome.PARTICIPANT) and not isinstance(
            error, ParticipantError
        ):
            self._context.trouble(f"evaluate:{known.pk}", error, now=now)
        self._context.log.info(
            "Evaluation ended.",
            event_key=f"evaluate.{outcome}",
            submission=known.pk,
            attempt=self._attempt,
            code=error.code,
        )
        self._forget()

    def _close(self, tx: Transaction, outcome: Outcome, reason: str, now: datetime) -> None:
        peak = self._child.peak_memory_bytes if self._child is not None else None
        tx.close_attempt(self._attempt, outcome, now=now, reason=reason, peak_memory_bytes=peak)

    def _forget(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child, self._submission, self._setup = None, None, None
        self._looked_at, self._read = None, None


def give_back(
    tx: Transaction, known: Tracked, error: NeucoError, outcome: Outcome, *, retry_at: datetime
) -> None:
    """Return a submission whose attempt failed through no fault of its author to the queue of fetched ones."""
    tx.move(known.pk, State.SCORING, State.FETCHED)
    if outcome in (Outcome.SHUTDOWN, Outcome.CANCELLED, Outcome.DEAD):
        return
    held = isinstance(error, OrganizerError)
    tx.note(
        known.pk,
        not_before=retry_at,
        tries=known.tries + 1,
        hold=error.code if held else None,
        hold_reason=error.sentence if held else None,
    )


def no_child(problem: OSError) -> InfrastructureError:
    """Say that the machine gave us no process."""
    return InfrastructureError(
        f"A process of its own could not be started for a submission ({problem.strerror}).",
        cure="Look at memory, disk space and the number of processes of this machine; it is tried again.",
        code="child.start",
    )


def _held(known: Tracked) -> bool:
    """Tell whether only a person can help; other faults are retried and go on by themselves once mended."""
    return known.hold is not None and known.hold.startswith("facts.")


def _typed(message: dict[str, Any]) -> tuple[Outcome, NeucoError]:
    families: dict[str, tuple[Outcome, Callable[..., NeucoError]]] = {
        "participant": (Outcome.PARTICIPANT, ParticipantError),
        "organizer": (Outcome.ORGANIZER, OrganizerError),
        "infrastructure": (Outcome.INFRASTRUCTURE, InfrastructureError),
        "memory": (Outcome.MEMORY, InfrastructureError),
    }
    outcome, kind = families.get(str(message.get("family")), families["infrastructure"])
    return outcome, kind(
        str(message.get("sentence")), cure=str(message.get("cure")), code=str(message.get("code"))
    )


def missing_tasks(tx: Transaction, content_hash: str, protocol_hash: str, tasks: dict[str, str]) -> list[str]:
    """Return the tasks of a phase that a content has no cell for."""
    known = {(cell["task"], cell["version"]) for cell in tx.cells(content_hash, protocol_hash)}
    return sorted(task for task, version in tasks.items() if (task, version) not in known)


def row_mean_q(tx: Transaction, content_hash: str, protocol_hash: str, tasks: dict[str, str]) -> float | None:
    """Return mean Q of a row of the score matrix, or None if a cell is missing: unscored is a state, never a value."""
    cells = {(cell["task"], cell["version"]): cell["q"] for cell in tx.cells(content_hash, protocol_hash)}
    values = [cells.get((task, version)) for task, version in sorted(tasks.items())]
    if any(value is None for value in values):
        return None
    return mean_quality([float(value) for value in values if value is not None])


def give_receipt(
    tx: Transaction, pk: int, setup: PhaseSetup, content_hash: str, *, now: datetime
) -> dict[str, str]:
    """Commit to what was scored, and return what the participant is told of it."""
    cells = [
        cell
        for cell in tx.cells(content_hash, setup.protocol.hash)
        if setup.tasks.get(cell["task"]) == cell["version"]
    ]
    record = receipts.make_record(
        submission=pk,
        phase=setup.codename,
        content_hash=content_hash,
        protocol_hash=setup.protocol.hash,
        cells=cells,
        scored_at=now,
    )
    return receipts.issue(tx, record)


def remarks_of(cell: dict[str, Any]) -> list[str]:
    """Return what a cell's scoring remarked for the organizer."""
    provenance: dict[str, Any] = json.loads(cell["provenance"])
    return [str(remark) for remark in provenance.get("remarks", ())]


__all__ = ["Evaluation", "give_back", "missing_tasks", "no_child", "remarks_of", "row_mean_q"]
