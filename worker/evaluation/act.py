"""Score one submission in a child process that may be killed.

:mod:`worker.evaluation.outcomes` decides what follows if the child ends by a signal, a deadline, the memory limit or an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from scoring.errors import NeucoError, ParticipantError
from scoring.scorecard import Scorecard
from worker.answers import answers
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.challenge.setups import PhaseSetup
from worker.evaluation.evaluate_child import EvaluationOrder, EvaluationResult, order_for
from worker.evaluation.outcomes import HOPELESS, STARTING, blame, hopeless, requeue
from worker.fairness.register import RegisterReplay, register
from worker.runtime.acts import SHARED, NotDue, fault_key
from worker.runtime.child_acts import ChildAct, Limits
from worker.runtime.storage import GIGABYTE, FileStore
from worker.state import (
    HOPELESS_TRIES,
    HOPELESS_WAIT,
    Outcome,
    State,
    Transaction,
)


def child_limits(configuration: Configuration) -> Limits:
    """Return the limits of a child that reads and scores a file."""
    limits = configuration.submission
    return Limits(deadline_s=limits.deadline, memory_bytes=int(limits.memory_gigabytes * GIGABYTE))


def save_card(tx: Transaction, setup: PhaseSetup, result: EvaluationResult) -> None:
    """Store what a child has scored, if anything; existing cells are kept."""
    if result["scorecard"] is None:
        return
    card = Scorecard.from_json(result["scorecard"])
    record = setup.record
    tx.save_cells(
        result["content_hash"],
        record.protocol.hash,
        record.codename,
        card.tasks,
        provenance={"versions": card.versions, "machine": card.machine},
    )


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreSubmission(ChildAct[EvaluationResult]):
    """Score a submission that EvalAI shows as running.

    Attributes:
        context: The worker's surroundings.
        files: Where files and temporary folders are.
        pk: The submission.
        setup: Its phase as it is recorded now.
        file: The submitted file.
        replay: Everything that is registered, from which the answer follows.
        stage: How far the child is.
    """

    name = "evaluate"
    module = "worker.evaluation.evaluate_child"
    context: Context
    files: FileStore
    pk: int
    setup: PhaseSetup
    file: Path
    replay: RegisterReplay
    stage: str = field(init=False, default=STARTING)

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Open the attempt, and look up what need not be scored."""
        begun = tx.open_attempts()
        if tx.known(self.pk).state is not State.SCORING or self.pk in begun:
            raise NotDue
        self._attempt = tx.open_attempt(self.pk, now=now)
        self.folder = self.files.temporary(f"evaluate-{self._attempt}")
        self._complete = tx.complete_rows(self.setup.record.protocol.hash, self.setup.record.versions)
        self._log("Scoring started.", "start")

    @property
    def limits(self) -> Limits:
        """The configured limits."""
        return child_limits(self.context.configuration)

    def order(self) -> EvaluationOrder:
        """Return what to score; content with all its cells is not scored again."""
        return order_for(
            self.setup,
            self.context.configuration,
            self.file,
            folder=self.folder,
            tasks=tuple(self.setup.record.versions),
            complete=self._complete,
        )

    def progress(self, message: Mapping[str, Any]) -> None:
        """Note the child's current stage."""
        self.stage = message.get("stage", self.stage)

    def is_due(self, tx: Transaction) -> bool:
        """Return whether the submission is still to be scored."""
        return tx.known(self.pk).state is State.SCORING

    def outcome(self, tx: Transaction, result: EvaluationResult, now: datetime) -> None:
        """Store the cells and the answer in one transaction."""
        setup = self.setup
        tx.note(self.pk, content_hash=result["content_hash"])
        save_card(tx, setup, result)
        # if nothing was scored, the engine may still be away
        tx.resolve_faults(
            self.name, SHARED if result["scorecard"] is not None else SHARED - {"engine", "library"}
        )
        if not self._is_current(tx):
            self._begin_again(tx, now)
            return
        register(tx, now)  # what a participant is shown follows from registered facts
        row = tx.known(self.pk)
        score = answers.register_row(tx, self.context.signer, self.replay, row, setup.record, now=now)
        if score is None:
            raise RuntimeError("the child ended but cells are missing")
        q_mean, value, receipt = score
        answer = answers.finished(
            value,
            rules=setup.record.rules,
            public=bool(row.public),
            board=self.context.configuration.board_address,
            notes=tuple(result["notes"]),
            zarr_suffix_removed=result["zarr_suffix_removed"],
            receipt=receipt,
        )
        self._decide_answer(tx, State.SCORED, answer, now, q_mean=q_mean)
        tx.close_attempt(self._attempt, Outcome.DONE, now=now)
        self._log("Submission scored.", "done")

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Answer the participant if the file is wrong; otherwise return the submission to the queue."""
        current = tx.known(self.pk)
        crashed = sum(attempt.outcome == Outcome.SIGNAL for attempt in tx.attempts(pk=self.pk))
        outcome, error = blame(error, self.stage, self.pk, crashed_before=crashed)
        if isinstance(error, ParticipantError):
            if not self._is_current(tx):  # the error may come from the old record alone
                self._begin_again(tx, now)
                return
            self._decide_answer(tx, State.REJECTED, answers.failed(error), now)
        else:
            key, retry_at = fault_key(self.name, error, self.pk), self.context.retry_at(now, current.tries)
            if (
                current.tries + 1 >= HOPELESS_TRIES and key == f"{self.name}:{self.pk}"
            ):  # no other submission shares the fault
                tx.resolve_alert(key)
                key, retry_at, error = HOPELESS, now + HOPELESS_WAIT, hopeless(error, self.pk)
            if requeue(tx, current, error, outcome, retry_at=retry_at):
                tx.report(key, error, now=now)
        tx.close_attempt(self._attempt, outcome, now=now)
        self._log("Scoring ended without a score.", outcome, code=error.code)

    def _is_current(self, tx: Transaction) -> bool:
        """Return whether the record on which this attempt scored is still the phase's current one."""
        row = tx.phase_record(self.setup.record.codename)
        return row is not None and row.record == self.setup.record.hash

    def _begin_again(self, tx: Transaction, now: datetime) -> None:
        """Have the submission scored on the current record, because no answer may come from an old one."""
        tx.move(self.pk, State.SCORING, State.FETCHED)
        tx.close_attempt(self._attempt, Outcome.CANCELLED, now=now)
        self._log("The phase was recorded again meanwhile; the submission will be scored again.", "outdated")

    def _decide_answer(
        self, tx: Transaction, target: State, answer: answers.Answer, now: datetime, **values: Any
    ) -> None:
        grid = self.context.configuration.submission.answer_grid
        release = answers.release_at(now, running_at=tx.known(self.pk).running_at, grid_s=grid)
        values |= {"answer": answer.to_json(), "decided_at": now, "not_before": release}
        if tx.move(self.pk, State.SCORING, target, **values):
            tx.resolve_alert(f"evaluate:{self.pk}")

    def _log(self, sentence: str, event: str, **details: str) -> None:
        self.context.log.info(
            sentence, event_key=f"evaluate.{event}", submission=self.pk, attempt=self._attempt, **details
        )
