"""Posting the answer to a submission."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from scoring.errors import NeucoError
from worker.answers.answers import Answer, release_at
from worker.challenge.sections import PhaseSection
from worker.evalai import Client
from worker.fairness.published import is_held
from worker.intake import facts, quota
from worker.intake.calls import Call
from worker.runtime.acts import NotDue
from worker.state import DECIDED, State, SubmissionRow, Transaction


@dataclass(kw_only=True, eq=False, repr=False)
class PostAnswer(Call[None]):
    """Post a submission's answer.

    Attributes:
        row: The submission, read after its answer was known.
        phase: Settings of its phase.
    """

    name = "post"
    answer: bool = True
    row: SubmissionRow
    phase: PhaseSection

    @cached_property
    def content(self) -> Answer:
        """What is posted."""
        return Answer.from_json(self.row.answer or "")

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record that the answer is being sent: from now on, an answer that EvalAI shows may be ours."""
        if is_held(tx) or tx.known(self.row.pk).answer != self.row.answer:
            raise NotDue
        remote = self.session.remote
        self._silent = remote is not None and self.row.phase_pk in remote.silent
        tx.note(self.row.pk, sent_at=now)

    def perform(self, resource: Client) -> None:
        """Send the answer, without stdout and stderr if the host has disabled the phase's logs."""
        self.context.store.check_lead()  # another leader may have sent a newer one
        row, answer = self.row, self.content
        if answer.status == "finished":
            resource.finish(
                row.pk,
                row.phase_pk or 0,
                stdout="" if self._silent else answer.stdout,
                split=self.phase.split,
                result=None if answer.value is None else {self.phase.metric: answer.value},
            )
        else:
            resource.fail(row.pk, row.phase_pk or 0, stderr="" if self._silent else answer.stderr)

    def outcome(self, tx: Transaction, result: None, now: datetime) -> None:
        """Record that EvalAI has it; if a rescore changed the answer meanwhile, the new answer is sent next."""
        row, status = self.row, self.content.status
        current = tx.known(row.pk)
        accepted = {
            "read_at": None,  # it is read at once, before anybody else has written there
            "sent_at": None,
            "evalai_shows": current.showing(status=status),
            "posted": row.answer,
            "answer_files": None,
            "insisted": row.insisted
            and bool(row.at_evalai.get("deleted")),  # else a later cancellation is told again
        }
        if current.state in DECIDED and current.answer == row.answer:
            tx.move(row.pk, current.state, State.POSTED if status == "finished" else State.FAILED, **accepted)
        else:
            tx.note(row.pk, **accepted)
        if status == "finished":
            facts.supersede_older(tx, row.pk)
            quota.tell(tx, current, now=now)

    def recorded(self, result: None, now: datetime) -> None:
        """Say that EvalAI has it."""
        self.context.log.info(
            "Result posted to EvalAI.",
            event_key="post.done",
            submission=self.row.pk,
            status=self.content.status,
        )

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Schedule the next try on the grid; whether the answer arrived is unknown, so the next try first reads the submission."""
        super().failure(tx, error, now)
        row, grid_s = tx.known(self.row.pk), self.context.configuration.submission.answer_grid
        moment = release_at(row.due_at, running_at=row.running_at, grid_s=grid_s)
        tx.note(row.pk, not_before=moment, read_at=None)
