"""Holds: why a submission waits for a person, and which command ends that."""

from __future__ import annotations

from datetime import datetime

from scoring.errors import OrganizerError
from worker.intake.changes import CODE, FILE_PLACE
from worker.state import UNSCORED, State, SubmissionRow, Transaction

NUMBER_USED, OTHER_CHALLENGE = "facts.number_used", "facts.other_challenge"
NOT_A_MEMBER = "facts.author_not_in_team"


def disagreement(row: SubmissionRow, *, challenge: int) -> OrganizerError | None:
    """Return why a person must act before a submission is scored, if that is so."""
    folder = FILE_PLACE.search(row.input_file or "")
    elsewhere = row.hold == OTHER_CHALLENGE or (
        folder is not None and folder[1] not in (None, str(challenge))
    )
    if elsewhere and row.message_phase is None and not row.insisted:
        return OrganizerError(
            f"Submission {row.pk} of team {row.team!r} was sent to another challenge and then moved into this one. It is not scored.",
            hint=f"`neuco-worker challenge disqualify {row.pk}` ends this alert. If the team sent it to this challenge, run `neuco-worker"
            f" challenge retry {row.pk}`.",
            code=OTHER_CHALLENGE,
        )
    if row.phase is None:
        return OrganizerError(
            f"Submission {row.pk} is for EvalAI phase {row.phase_pk}, which is not in the configuration.",
            hint="Add the phase under `phases` and reload the worker. Until then, the submission waits.",
            code="facts.phase_unconfigured",
        )
    if row.excluded is not None or row.insisted:
        return None
    if row.state in UNSCORED and row.by_member is False:
        return not_a_member(row)
    if row.hold in (NOT_A_MEMBER, NUMBER_USED):  # found out while it was being scored, or before
        return ask(row, row.hold_reason or "", row.hold)
    return None


def hidden(row: SubmissionRow) -> OrganizerError:
    """Return that EvalAI itself has announced a submission, and never showed it."""
    return OrganizerError(
        f"Submission {row.pk} was sent to this challenge, and moved to another one before the worker read it.",
        hint="It is scored once it is moved back; its team, which the worker does not know, can also send the file again."
        f" `neuco-worker challenge disqualify {row.pk}` ends this alert.",
        code=CODE,
    )


def not_a_member(row: SubmissionRow) -> OrganizerError:
    """Return the contradiction that the author of a submission does not belong to the team for which it was sent."""
    sentence = (
        f"Submission {row.pk} was sent for team {row.team!r}, but its author is not a member of this team."
    )
    return ask(row, sentence, NOT_A_MEMBER)


def ask(row: SubmissionRow, sentence: str, code: str) -> OrganizerError:
    """Return the error for a submission whose facts contradict each other, so that only its team knows whether it sent it."""
    return OrganizerError(
        sentence,
        hint=f"Ask the team. If it sent the submission, run `neuco-worker challenge retry {row.pk}`. If it did not, run `neuco-worker"
        f" challenge disqualify {row.pk}` with the reason.",
        code=code,
    )


def hold(tx: Transaction, row: SubmissionRow, error: OrganizerError, *, now: datetime) -> None:
    """Put a submission on hold until a person acts, and alert that person; an upload under way is not looked at before that."""
    tx.move(row.pk, State.UPLOADING, State.ACKNOWLEDGED)
    tx.note(row.pk, hold=error.code, hold_reason=error.sentence)
    tx.report(f"hold:{row.pk}", error, now=now)
