"""What an organizer decides while a challenge runs: which submission counts, and whether the daemon goes on; all with a trail."""

from __future__ import annotations

from typing import Literal

from scoring.errors import OrganizerError
from worker.challenge.setups import not_recorded, read_record
from worker.evaluation.matrix import missing_tasks
from worker.fairness.register import register
from worker.organizer.session import OrganizerSession, known_submission
from worker.state import ACTIVE, COUNTED, State, SubmissionRow, Transaction


def choose(session: OrganizerSession, pk: int, reason: str) -> str:
    """Let a submission count for its team, and return its phase.

    Raises:
        OrganizerError: If it is not known or not scored, or another rule selects in its phase.
    """
    with session.store.write() as tx:
        row = known_submission(tx, pk)
        if row.state not in COUNTED or row.phase is None or row.team_key is None:
            raise OrganizerError(
                f"Submission {pk} is {row.state}, but only a scored submission can count.",
                code="choose.unscored",
            )
        record = read_record(tx, row.phase)
        if record is None:
            raise not_recorded(row.phase)
        if record.rules.selection != "chosen":
            raise OrganizerError(
                f"In phase {row.phase}, the {record.rules.selection} submission of each team counts, so none can be chosen.",
                cure=f"Set phases.{row.phase}.selection: chosen and run `neuco-worker challenge rules` first.",
                code="choose.selection",
            )
        register(tx, session.clock())  # what had changed before has another reason
        tx.choose(row.phase, row.team_key, pk, reason)
        tx.request_publish()
        tx.log("chosen", actor=session.actor, now=session.now, submission=pk, phase=row.phase, reason=reason)
        register(tx, session.clock(), reason=reason)
        return row.phase


def disqualify(session: OrganizerSession, pk: int, reason: str) -> str | None:
    """Take a submission off the board, and return its phase.

    Raises:
        OrganizerError: If it is not known.
    """
    with session.store.write() as tx:
        return _exclude(session, tx, pk, reason, excluded=reason, action="disqualified").phase


def reinstate(session: OrganizerSession, pk: int, reason: str) -> tuple[str | None, bool]:
    """Let a disqualified submission count again; return its phase, and whether it has a score for every task.

    Raises:
        OrganizerError: If it is not known.
    """
    with session.store.write() as tx:
        row = _exclude(session, tx, pk, reason, excluded=None, action="reinstated")
        record = tx.phase_record(row.phase or "")
        complete = (
            record is None
            or row.content_hash is None
            or not missing_tasks(tx, row.content_hash, record.protocol_hash, record.tasks)
        )
        return row.phase, complete


def _exclude(
    session: OrganizerSession, tx: Transaction, pk: int, reason: str, *, excluded: str | None, action: str
) -> SubmissionRow:
    row = known_submission(tx, pk)
    register(tx, session.clock())  # what had changed before has another reason
    tx.note(pk, excluded=excluded)
    tx.request_publish()
    tx.log(action, actor=session.actor, now=session.now, submission=pk, reason=reason)
    register(tx, session.clock(), reason=reason)
    return row


def retry(session: OrganizerSession, pk: int) -> SubmissionRow:
    """Let a submission that waits for another try go at once, and return it as it was.

    What it waits for decides: after a fault of network, machine or configuration the running worker tries it again; where EvalAI said
    two things of it, EvalAI is asked again, and the hold ends if that is settled. Safe while a worker runs: nothing of its state changes.

    Raises:
        OrganizerError: If it is not known, or nothing is owed to its author.
    """
    with session.store.write() as tx:
        row = known_submission(tx, pk)
        if row.state is State.SCORING:
            raise OrganizerError(
                f"Submission {pk} is being scored now.",
                cure="Wait until it has ended. `neuco-worker status` shows whether it is tried again.",
                code="submission.running",
            )
        if row.state not in ACTIVE:
            raise OrganizerError(
                f"Submission {pk} is {row.state}, so it does not need to be scored.",
                cure="To score it again, re-run it at EvalAI as a host. To score changed tasks, run `neuco-worker challenge rescore`.",
                code="submission.nothing_owed",
            )
        tx.release(pk)
        if row.disputed:
            tx.note(pk, read_at=None)
        tx.log("retried", actor=session.actor, now=session.now, submission=pk)
        return row


def set_mode(session: OrganizerSession, mode: Literal["pause", "drain"] | None, action: str) -> None:
    """Have the daemon pause, drain, or go on as usual; ``action`` names that in the audit trail."""
    with session.store.write() as tx:
        tx.set_fact("mode", mode)
        tx.log(action, actor=session.actor, now=session.now)


def is_frozen(session: OrganizerSession, phase: str | None) -> bool:
    """Check whether a phase's board is closed, and will not follow a decision."""
    with session.store.read() as tx:
        record = None if phase is None else tx.phase_record(phase)
    return record is not None and record.frozen_at is not None
