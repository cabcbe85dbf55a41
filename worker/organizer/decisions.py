"""The organizer's decisions during a challenge, such as a disqualification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.fairness.register import disqualified_teams, register, register_team
from worker.intake import changes
from worker.organizer.session import OrganizerSession, check_clock
from worker.state import ACTIVE, ANSWERED, State, SubmissionRow, Transaction


def submission(session: OrganizerSession, pk: int) -> SubmissionRow:
    """Return a submission by the number that a person gave.

    Raises:
        OrganizerError: If it is unknown.
    """
    with session.store.read() as tx:
        return _submission(tx, pk)


def _submission(tx: Transaction, pk: int) -> SubmissionRow:
    row = tx.get(pk)
    if row is None:
        raise OrganizerError(
            f"There is no submission {pk} here.",
            hint="`neuco-worker submissions` lists all with their numbers.",
            code="submission.unknown",
        )
    return row


def disqualify(session: OrganizerSession, pk: int, reason: str, *, undo: bool = False) -> bool:
    """Take all runs of a submission off the board, or let them count again; return whether they have a score for every task.

    Raises:
        OrganizerError: If it is unknown.
    """
    with session.store.write() as tx:
        row = _submission(tx, pk)
        rows = changes.runs(tx, row)
        if (row.excluded is None) is not undo:  # else another command was quicker
            with decided(session, tx, reason):
                for run in rows:
                    tx.note(run.pk, excluded=None if undo else reason)
            for run in rows:
                changes.tell(tx, run.pk, now=session.clock())
                if run.state is State.CANCELLED:
                    tx.resolve_alert(f"hold:{run.pk}")
        return all(_is_complete(tx, run) for run in rows)


def follow(session: OrganizerSession, pk: int, taken: Mapping[str, tuple[Any, Any]], reason: str) -> None:
    """Take over what EvalAI shows of a submission: a withdrawal, whether it is public, its method and its links.

    Raises:
        OrganizerError: If it is unknown, or EvalAI no longer shows what is to be taken over.
    """
    with session.store.write() as tx:
        if changes.followed(_submission(tx, pk)) != taken:
            raise OrganizerError(
                f"What EvalAI shows of submission {pk} has changed meanwhile. Nothing was done.",
                hint="Run the command again, and read what it would take over now.",
                code="submission.changed_meanwhile",
            )
        found = {name: now for name, (_, now) in taken.items()}
        withdrawn = [found.pop(name) for name in ("cancelled", "deleted") if name in found]
        rows = changes.runs(tx, _submission(tx, pk))
        with decided(session, tx, reason):
            for row in rows:
                tx.note(row.pk, **found, **({"excluded": reason} if withdrawn else {}))
        for row in rows:
            changes.tell(tx, row.pk, now=session.clock())


def team(session: OrganizerSession, number: int) -> tuple[list[SubmissionRow], bool]:
    """Return the submissions of a team, oldest first, and whether it is disqualified.

    Raises:
        OrganizerError: If it has none.
    """
    with session.store.read() as tx:
        return _sent_by(tx, number), number in disqualified_teams(tx)


def disqualify_team(session: OrganizerSession, number: int, reason: str, *, undo: bool = False) -> bool:
    """Take all submissions of a team off the boards of all phases, later ones too, or let them count again.

    Returns:
        Whether those that it has sent have a score for every task.

    Raises:
        OrganizerError: If it has none.
    """
    with session.store.write() as tx:
        rows = _sent_by(tx, number)
        if (number in disqualified_teams(tx)) is undo:
            with decided(session, tx, reason):
                register_team(tx, number, disqualified=not undo, reason=reason, now=session.clock())
        return all(_is_complete(tx, row) for row in rows)


def _sent_by(tx: Transaction, number: int) -> list[SubmissionRow]:
    rows = tx.submissions(team=number)
    if not rows:
        raise OrganizerError(
            f"There is no submission of a team with the number {number} here.",
            hint="`neuco-worker submissions --json` lists all with the number of their team.",
            code="team.unknown",
        )
    return rows


def _is_complete(tx: Transaction, row: SubmissionRow) -> bool:
    """Return whether a submission has a score for every task, if it was scored at all."""
    record = tx.phase_record(row.phase or "")
    return (
        record is None
        or row.content_hash is None
        or not tx.missing_tasks(row.content_hash, record.protocol_hash, record.tasks)
    )


@contextmanager
def decided(session: OrganizerSession, tx: Transaction, reason: str) -> Iterator[None]:
    """Register what the block decides, with its reason, and have it published.

    Raises:
        InfrastructureError: As :func:`worker.organizer.session.check_clock`.
    """
    check_clock(tx)
    register(tx, session.clock())  # first, so that earlier changes do not get this reason
    yield
    tx.request_publish()
    register(tx, session.clock(), reason=reason)


def retry(session: OrganizerSession, pk: int) -> str:
    """Let a submission that waits for another try continue at once; return what happens with it, as a sentence.

    After a fault of the network, the machine or the configuration, the running worker tries it again. One that was cancelled or deleted at
    EvalAI before its answer, or whose author is not in its team, is scored and answered after all. The answer of one that was answered is
    sent to EvalAI again. All of this is safe while a worker runs.

    Raises:
        OrganizerError: If it is unknown, or is not to be scored.
    """
    with session.store.write() as tx:
        row = _submission(tx, pk)
        if row.state is State.SCORING:
            raise OrganizerError(
                f"Submission {pk} is being scored now.",
                hint="Wait until it has ended. `neuco-worker submissions` shows whether it is tried again.",
                code="submission.running",
            )
        if row.state is State.CANCELLED and row.evalai_shows is not None:
            tx.note(pk, insisted=True, read_at=None)
            tx.move(pk, State.CANCELLED, State.ACKNOWLEDGED, running_at=None, answer=None)
            return f"Submission {pk} is scored and answered, whatever EvalAI shows."
        if row.state in ANSWERED and row.posted is not None:
            again = State.REJECTED if row.state is State.FAILED else State.SCORED
            tx.move(pk, row.state, again, insisted=True, reposts=0, decided_at=session.clock())
            return f"The answer to submission {pk} is sent to EvalAI again."
        if row.state not in ACTIVE:
            raise OrganizerError(
                f"Submission {pk} is {row.state}, so it does not need to be scored.",
                hint="To score it again, re-run it at EvalAI as a host. To score changed tasks, run `neuco-worker challenge apply`.",
                code="submission.nothing_to_retry",
            )
        tx.release(pk)
        if row.disputed:
            tx.note(pk, read_at=None, insisted=row.phase is not None)
            return f"Submission {pk} was on hold: {row.hold_reason} The worker continues with it, if the configuration has its phase."
        if row.tries and tx.known(pk).not_before is None:
            return f"Submission {pk} ({row.state}) is tried again now, after {count_of(row.tries, 'failed attempt')}."
        return f"Submission {pk} ({row.state}) only waits, and `neuco-worker submissions` says for what; nothing was done."
