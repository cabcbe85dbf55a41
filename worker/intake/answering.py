"""Posting the answer to a submission."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from scoring.errors import NeucoError, OrganizerError
from worker.answers.answers import Answer, release_at
from worker.challenge.context import Context
from worker.challenge.sections import PhaseSection
from worker.evalai import Client, Rejected, TokenRefused
from worker.intake import facts, quota
from worker.intake.calls import Call
from worker.intake.session import Session
from worker.state import ALERT_AFTER_TRIES, OutboxKind, OutboxRow, State, SubmissionRow, Transaction


class PostAnswer(Call[None]):
    """Post a submission's answer.

    Args:
        context: The worker's surroundings.
        session: The session with EvalAI.
        pending: The row of the outbox.
        row: The submission, read after its answer was known.
        phase: Settings of its phase.
    """

    name = "post"
    pk: int
    answer = True
    records_wait: ClassVar[bool] = True

    def __init__(
        self, context: Context, session: Session, pending: OutboxRow, row: SubmissionRow, phase: PhaseSection
    ) -> None:
        self._context = context
        self._session = session
        self._pending = pending
        self._row = row
        self._phase = phase
        self._phase_pk = row.phase_pk or 0
        self._answer = Answer.from_json(row.answer or "")
        self._silent = session.remote is not None and row.phase_pk in session.remote.silent
        self.pk = row.pk

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record that the answer is being sent: from now on, an answer that EvalAI shows may be ours."""
        super().intent(tx, now)
        tx.note_pending(self._pending.id, sent_at=now)

    def perform(self, resource: Client) -> None:
        """Send the answer, without stdout and stderr if the host has disabled the phase's logs."""
        self._context.store.check_lead()  # another leader may have sent a newer one
        answer = self._answer
        if answer.status == "finished":
            resource.finish(
                self._row.pk,
                self._phase_pk,
                stdout="" if self._silent else answer.stdout,
                split=self._phase.split,
                result=None if answer.value is None else {self._phase.metric: answer.value},
            )
        else:
            resource.fail(self._row.pk, self._phase_pk, stderr="" if self._silent else answer.stderr)

    def outcome(self, tx: Transaction, result: None, now: datetime) -> None:
        """Record that EvalAI has it; if a rescore changed the answer meanwhile, the new answer is sent next."""
        row, status = self._row, self._answer.status
        accepted = {
            "read_at": None,  # it is read at once, before anybody else has written there
            "posted": row.answer,
            "answer_files": None,
            "insisted": row.insisted
            and bool(row.at_evalai.get("deleted")),  # else a later cancellation is told again
        }
        tx.note_pending(self._pending.id, done_at=now)
        current = tx.get(row.pk)
        if current is None:
            return
        accepted["evalai_shows"] = current.showing(status=status)
        if current.answer != row.answer:
            tx.note(row.pk, **accepted)
            tx.enqueue(OutboxKind.POST, row.pk, now=now)
        elif current.state in (State.SCORED, State.REJECTED):
            tx.move(row.pk, current.state, State.POSTED if status == "finished" else State.FAILED, **accepted)
        else:
            tx.note(row.pk, **accepted)
        if status == "finished":
            facts.supersede_older(tx, row.pk)
            quota.tell(tx, current, now=now)

    def recorded(self, result: None, now: datetime) -> None:
        """Say that EvalAI has it."""
        self._context.log.info(
            "Result posted to EvalAI.", event_key="post.done", submission=self.pk, status=self._answer.status
        )

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Schedule the next try on the grid; whether the answer arrived is unknown, so the next try first reads the submission."""
        row, pending = self._row, self._pending
        moment = release_at(
            self._context.retry_at(now, pending.tries),
            running_at=row.running_at,
            grid_s=self._context.configuration.submission.answer_grid,
        )
        tx.postpone(pending.id, not_before=moment)
        tx.note(row.pk, read_at=None)
        # Only if EvalAI answers all other calls, because an outage has an alert of its own.
        stuck = pending.tries + 1 >= ALERT_AFTER_TRIES and self._session.silent_since == now
        if isinstance(error, Rejected) or stuck:
            tx.report(f"post:{row.pk}", error, now=now)


def defer(context: Context, tx: Transaction, pk: int, error: NeucoError, now: datetime) -> None:
    """Delay a submission after a failed call about it."""
    row = tx.get(pk)
    if row is None:
        return
    tx.note(pk, not_before=context.retry_at(now, row.tries), tries=row.tries + 1)
    if isinstance(error, OrganizerError) and not isinstance(error, TokenRefused):
        tx.report(f"read:{pk}", error, now=now)
