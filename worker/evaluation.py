"""Evaluation: the one submission that is being scored, in a child process that may be killed.

The daemon decides what happens at each end of the child: its death by signal, deadline, memory or exception is a typed outcome, see
:mod:`worker.endings`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scoring.errors import Cancelled, InfrastructureError, ParticipantError
from scoring.scorecard import Scorecard
from worker import answers, endings
from worker.challenge import PhaseSetup
from worker.children import LOOK_S, Child
from worker.context import Context, seconds
from worker.endings import Ending, give_back
from worker.evaluate_child import order_for
from worker.files import FileStore
from worker.limits import GIGABYTE, reading_memory
from worker.matrix import give_receipt, missing_tasks, row_mean_q
from worker.state import Tracked, Transaction
from worker.states import Attempt, Errand, Outcome, State
from worker.turns import next_in_turn


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
        self._bare_bytes = 0  # of memory: what the child had before it read anything
        self._asked = False  # the child waits to hear which cells are missing
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

        Ten files of one team do not hold up another team's first. A team's next file waits until the answer to the one before has left:
        EvalAI shows when a file was begun, which would otherwise tell when the one before was done, answer grid or not.
        """
        grid = seconds(self._context.configuration.submission.answer_grid)
        with self._context.store.read() as tx:
            stored = tx.submissions([State.FETCHED, State.SCORING])
            if not stored:
                return None
            waiting = answers.unreleased(tx, now, grid=grid)
            ready = [
                known
                for known in stored
                if not known.waits(now)
                and not _held(known)
                and (
                    known.state is State.SCORING
                    or (known.team_key not in waiting and known.phase not in self._context.behind)
                )
            ]
            ready = self._context.sharing.scorable(tx, ready)
            begun = next((known for known in ready if known.state is State.SCORING), None)
            chosen = begun or next_in_turn(tx, ready)
        return None if chosen is None else chosen.pk

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
        self._looked_at, self._spent_s, self.folds_done, self._bare_bytes = now, 0.0, 0, 0
        self._context.checkpoint("before child evaluate")
        name, limits = f"evaluate-{self._attempt}", configuration.submission
        cgroup = self._context.cgroup
        memory_bytes = int(limits.memory_gigabytes * GIGABYTE)
        ceiling = None if cgroup is None else cgroup.ceiling(name, memory_bytes=memory_bytes)
        try:
            self._child = Child(
                "worker.evaluate_child",
                order_for(setup, configuration, file),
                folder=self._files.temporary(name),
                wake=self._context.wake,
                ceiling=ceiling,
            )
        except OSError as problem:
            self._end((Outcome.INFRASTRUCTURE, endings.no_child(problem)), now)
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
        for message in child.messages():
            moved = True
            if self._take(message, now):
                return True
        if self._asked:  # also in the step after one in which the database could not be written
            self._reply_missing(now)
        if (status := child.ended()) is not None and not child.pending:
            self._end(self._death(child, status), now)
            return True
        with self._context.store.read() as tx:
            current = tx.get(known.pk)
            ours = self._context.sharing.holds(tx, self._attempt)
        if current is None or current.state is not State.SCORING or not ours:
            self._end((Outcome.CANCELLED, Cancelled("The submission was cancelled.")), now)
            return True
        if self._spent_s > limits.deadline:
            self._end(self._limit_hit(Outcome.DEADLINE), now)
            return True
        if child.memory_bytes() > limits.memory_gigabytes * GIGABYTE:
            self._end(self._limit_hit(Outcome.MEMORY), now)
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
            self._bare_bytes = int(message.get("memory_bytes", self._bare_bytes))
        elif kind == "progress":
            self.folds_done += int(message.get("folds", 0))
        elif kind == "read":
            self._read, self._asked = message, True
        elif kind == "done":
            self._finish(message, now)
            return True
        elif kind == "error":
            ending = endings.said(message)
            self._end(self._limit_hit(Outcome.MEMORY) if ending[0] is Outcome.MEMORY else ending, now)
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
        self._asked = False

    def _finish(self, message: dict[str, Any], now: datetime) -> None:
        """Make the result durable: cells, answer and its place in the outbox, in one transaction."""
        known, read, setup = self._submission, self._read, self._setup
        if known is None or read is None or setup is None:
            self._end(
                (Outcome.INFRASTRUCTURE, InfrastructureError("The child said nothing of the file.")), now
            )
            return
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
            overtaken = self._overtaken(tx)
            if overtaken:  # an answer would stand on tasks that no other answer stands on any more
                tx.move(known.pk, State.SCORING, State.FETCHED)
                self._close(tx, Outcome.OVERTAKEN, "a rescore took other tasks up meanwhile", now)
            else:
                self._answer(tx, known, read, setup, now)
        self._context.checkpoint("after result stored")
        if overtaken:
            self._context.log.info(
                "Scored while a rescore took other tasks up; what they lack comes next.",
                event_key="evaluate.overtaken",
                submission=known.pk,
                attempt=self._attempt,
            )
        else:
            self._context.log.info(
                "Scored.", event_key="evaluate.done", submission=known.pk, attempt=self._attempt
            )
        self._forget()

    def _overtaken(self, tx: Transaction) -> bool:
        """Tell whether a rescore has taken other tasks up since the child began."""
        record = None if self._setup is None else tx.phase_record(self._setup.codename)
        return record is not None and self._setup is not None and not self._setup.is_recorded(record)

    def _answer(
        self, tx: Transaction, known: Tracked, read: dict[str, Any], setup: PhaseSetup, now: datetime
    ) -> None:
        """Owe the answer that a complete row gives."""
        q_mean = row_mean_q(tx, read["content_hash"], setup.protocol.hash, dict(setup.tasks))
        if q_mean is None:
            raise RuntimeError("the child ended but cells are missing")
        receipt = give_receipt(tx, known.pk, setup, read["content_hash"], now=now)
        answer = answers.finished(
            q_mean,
            decimals=self._context.configuration.leaderboard.decimals,
            notes=tuple(str(note) for note in read.get("notes", ())),
            zarr_suffix_removed=bool(read.get("zarr_suffix_removed")),
            receipt=receipt,
        )
        self._owe(tx, known, State.SCORED, answer, now, q_mean=q_mean, scored_at=now)
        self._close(tx, Outcome.DONE, "", now)

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

    def _limit_hit(self, outcome: Outcome) -> Ending:
        return endings.limit_hit(outcome, self._stage, self.submission, fits=self._fits())

    def _fits(self) -> bool:
        """Tell whether a good file can be read within the memory limit, on top of what the child had before it read anything."""
        if self._setup is None or self._stage != endings.READING:
            return True
        needed = reading_memory(len(self._setup.ids), self._setup.protocol.embedding_dim)
        limit = self._context.configuration.submission.memory_gigabytes * GIGABYTE
        return self._bare_bytes + needed <= limit

    def _death(self, child: Child, status: int) -> Ending:
        """Say how the child died; its stderr goes to the log, never out."""
        if errors := child.errors():
            self._context.log.error(
                "The evaluation's process failed.",
                event_key="evaluate.stderr",
                submission=self.submission,
                stderr=errors[-2000:],
            )
        if child.out_of_memory():
            return self._limit_hit(Outcome.MEMORY)
        with self._context.store.read() as tx:
            tried = tx.attempts(pk=self.submission)
        crashed = sum(attempt["outcome"] == Outcome.SIGNAL for attempt in tried)
        return endings.death(status, self._stage, self.submission, crashed_before=crashed)

    def _end(self, ending: Ending, now: datetime) -> None:
        outcome, error = ending
        known = self._submission
        if known is None:
            return
        self._context.checkpoint("before attempt ends")
        with self._context.store.write() as tx:
            if not self._context.sharing.holds(tx, self._attempt):
                pass  # another worker has taken it over: what becomes of it is that one's affair
            elif self._stage == "scoring" and isinstance(error, ParticipantError) and self._overtaken(tx):
                outcome = Outcome.OVERTAKEN  # by tasks that were given up, perhaps just for this
                tx.move(known.pk, State.SCORING, State.FETCHED)
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
        if error.code == "tasks.changed" and known.phase is not None and self._context.sharing.shared:
            self._context.doubted.add(known.phase)
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
        self._looked_at, self._read, self._asked = None, None, False


def _held(known: Tracked) -> bool:
    """Tell whether only a person can help; other faults are retried and go on by themselves once mended."""
    return known.hold is not None and known.hold.startswith("facts.")
