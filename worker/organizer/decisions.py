"""The organizer's decisions during a challenge, such as which submission counts; all are recorded in the audit trail."""

from __future__ import annotations

from typing import Literal

from scoring.errors import OrganizerError
from worker.challenge.setups import not_recorded, read_record
from worker.evaluation.matrix import missing_tasks
from worker.fairness.register import register
from worker.organizer.session import OrganizerSession, known_submission
from worker.state import ACTIVE, COUNTED, State, SubmissionRow, Transaction


def choose(session: OrganizerSession, pk: int, reason: str) -> str:
    """Choose the submission that counts for its team, and return its phase.

    Raises:
        OrganizerError: If it is unknown or not scored, or another rule selects in its phase.
    """
    with session.store.write() as tx:
        row = known_submission(tx, pk)
        if row.state not in COUNTED or row.phase is None or row.team_key is None:
            raise OrganizerError(
                f"Submission {pk} is {row.state}; a submission can count only after its score has been posted to EvalAI.",
                cure="Choose one that is posted or published: `neuco-worker submissions` shows the states.",
                code="choose.unscored",
            )
        record = read_record(tx, row.phase)
        if record is None:
            raise not_recorded(row.phase)
        if record.rules.selection != "chosen":
            raise OrganizerError(
                f"Phase {row.phase} has selection: {record.rules.selection}, so no submission can be chosen by hand.",
                cure=f"Set phases.{row.phase}.selection: chosen and run `neuco-worker challenge apply --reason TEXT` first.",
                code="choose.selection",
            )
        register(tx, session.clock())  # first, so that earlier changes do not get this reason
        tx.choose(row.phase, row.team_key, pk)
        tx.request_publish()
        tx.log("chosen", actor=session.actor, now=session.now, submission=pk, phase=row.phase, reason=reason)
        register(tx, session.clock(), reason=reason)
        return row.phase


def disqualify(session: OrganizerSession, pk: int, reason: str) -> SubmissionRow:
    """Take a submission off the board, and return it as it was before.

    Raises:
        OrganizerError: If it is unknown.
    """
    with session.store.write() as tx:
        return _exclude(session, tx, pk, reason, excluded=reason, action="disqualified")


def reinstate(session: OrganizerSession, pk: int, reason: str) -> tuple[SubmissionRow, bool]:
    """Let a disqualified submission count again; return it as it was before, and whether it has a score for every task.

    Raises:
        OrganizerError: If it is unknown.
    """
    with session.store.write() as tx:
        row = _exclude(session, tx, pk, reason, excluded=None, action="reinstated")
        record = tx.phase_record(row.phase or "")
        complete = (
            record is None
            or row.content_hash is None
            or not missing_tasks(tx, row.content_hash, record.protocol_hash, record.tasks)
        )
        return row, complete


def _exclude(
    session: OrganizerSession, tx: Transaction, pk: int, reason: str, *, excluded: str | None, action: str
) -> SubmissionRow:
    row = known_submission(tx, pk)
    if (row.excluded is None) is (excluded is None):
        return row
    register(tx, session.clock())  # first, so that earlier changes do not get this reason
    tx.note(pk, excluded=excluded)
    tx.request_publish()
    tx.log(action, actor=session.actor, now=session.now, submission=pk, reason=reason)
    register(tx, session.clock(), reason=reason)
    return row


def retry(session: OrganizerSession, pk: int) -> SubmissionRow:
    """Let a submission that waits for another try continue at once; return it as it was before.

    After a fault of the network, the machine or the configuration, the running worker tries it again. If EvalAI's facts contradict each
    other, EvalAI is asked again, and the hold ends if that settles it. This is safe while a worker runs, because its state does not change.

    Raises:
        OrganizerError: If it is unknown, or nothing is owed to its author.
    """
    with session.store.write() as tx:
        row = known_submission(tx, pk)
        if row.state is State.SCORING:
            raise OrganizerError(
                f"Submission {pk} is being scored now.",
                cure="Wait until it has ended. `neuco-worker submissions` shows whether it is tried again.",
                code="submission.running",
            )
        if row.state not in ACTIVE:
            raise OrganizerError(
                f"Submission {pk} is {row.state}, so it does not need to be scored.",
                cure="To score it again, re-run it at EvalAI as a host. To score changed tasks, run `neuco-worker challenge apply`.",
                code="submission.nothing_owed",
            )
        tx.release(pk)
        if row.disputed:
            tx.note(pk, read_at=None, by_member=row.by_member or None)
        tx.log("retried", actor=session.actor, now=session.now, submission=pk)
        return row


def set_mode(session: OrganizerSession, mode: Literal["pause", "drain"] | None, action: str) -> None:
    """Make the daemon pause, drain, or resume; ``action`` names this in the audit trail."""
    with session.store.write() as tx:
        tx.set_fact("mode", mode)
        tx.log(action, actor=session.actor, now=session.now)


def is_frozen(session: OrganizerSession, phase: str | None) -> bool:
    """Return whether a phase's board is closed, so that it will not follow a decision."""
    with session.store.read() as tx:
        record = None if phase is None else tx.phase_record(phase)
    return record is not None and record.frozen_at is not None
