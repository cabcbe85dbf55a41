"""Outcomes: how a child that reads or scores ended, and who is to blame.

A limit exceeded while *reading* is the participant's fault, because a file can be made to exceed it. A limit exceeded while *scoring* is
an infrastructure fault, because after validation the cost depends on the shape alone.
"""

from __future__ import annotations

import signal
from datetime import datetime

from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError, ParticipantError
from worker.runtime.child_acts import Died, OverLimit
from worker.state import HOPELESS_TRIES, HOPELESS_WAIT, Outcome, State, SubmissionRow, Transaction

CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
# One crash of a library may be bad luck; three in a row are the file's fault.
CRASHES_TO_BLAME = 3
HOPELESS = "evaluate.hopeless"
STARTING, READING, SCORING = "starting", "reading", "scoring"
"""The stages of a child's work; limits and crashes are the file's fault while the file is read."""

Ending = tuple[Outcome, NeucoError]


def limit_hit(outcome: Outcome, stage: str, pk: int) -> Ending:
    """Blame an exceeded deadline or memory limit: on the file while it is read, on us afterwards.

    Args:
        outcome: The limit.
        stage: The child's stage.
        pk: The submission.
    """
    what = "time" if outcome is Outcome.DEADLINE else "memory"
    if stage == READING:
        return outcome, ParticipantError(
            f"Reading the file took more {what} than a submission may use.",
            hint="Check that the file has one row per public id, the required number of columns, and nothing else.",
            code="file.deadline" if outcome is Outcome.DEADLINE else "file.memory",
        )
    return outcome, InfrastructureError(
        f"Scoring submission {pk} exceeded the {what} limit in stage {stage!r}.",
        hint=f"Raise submission.{'deadline' if outcome is Outcome.DEADLINE else 'memory_gigabytes'}, or use a larger machine.",
        code="evaluate.deadline" if outcome is Outcome.DEADLINE else "evaluate.memory",
    )


def death(error: Died, stage: str, pk: int, *, crashed_before: int) -> Ending:
    """Explain the death of a child that reported no error.

    Args:
        error: How it died.
        stage: The child's stage.
        pk: The submission.
        crashed_before: How many earlier attempts at the submission were ended by a signal.
    """
    outcome = Outcome.SIGNAL if error.status < 0 else Outcome.FAILED
    if -error.status in CRASHES and stage == READING and crashed_before >= CRASHES_TO_BLAME - 1:
        return outcome, ParticipantError(
            "The file cannot be read: the reader crashed on it three times.",
            hint="Write the file again with pandas, PyArrow or NumPy, or submit it as CSV.",
            code="file.breaks_reader",
        )
    return outcome, InfrastructureError(
        f"The process that evaluated submission {pk} ended {error.reason} in stage {stage!r}.",
        hint="The worker tries again. The log has the details.",
        code="evaluate.died",
    )


def hopeless(error: NeucoError, pk: int) -> InfrastructureError:
    """Return the error for a submission whose evaluation has failed many times in a row."""
    return InfrastructureError(
        f"The evaluation of submission {pk} failed {HOPELESS_TRIES} times in a row: {error.sentence}",
        hint=f"It is now tried every {HOPELESS_WAIT.seconds // 60} minutes. When the cause is fixed, restart the worker, or run"
        f" `neuco-worker challenge retry {pk}`. {error.hint}".strip(),
        code=HOPELESS,
    )


def blame(error: NeucoError, stage: str, pk: int, *, crashed_before: int) -> Ending:
    """Return the outcome of a failed child, and the error that says who is to blame.

    Args:
        error: The error that the runner found or the child reported.
        stage: The child's stage.
        pk: The submission.
        crashed_before: See :func:`death`.
    """
    if isinstance(error, OverLimit):
        return limit_hit(error.limit, stage, pk)
    if isinstance(error, Died):
        return death(error, stage, pk, crashed_before=crashed_before)
    if isinstance(error, Cancelled):
        return Outcome.CANCELLED, error
    if isinstance(error, ParticipantError):
        return Outcome.PARTICIPANT, error
    return Outcome.FAILED, error


def requeue(
    tx: Transaction, row: SubmissionRow, error: NeucoError, outcome: Outcome, *, retry_at: datetime
) -> bool:
    """Put a submission back among the fetched ones, after an attempt that failed through no fault of its author.

    Returns:
        Whether it must wait before the next try. A submission that has ended meanwhile is left as it is.
    """
    returned = tx.move(row.pk, State.SCORING, State.FETCHED)
    if not returned or outcome is Outcome.CANCELLED:
        return False
    tx.note(row.pk, not_before=retry_at, tries=row.tries + 1)
    if isinstance(error, OrganizerError) and not row.disputed:
        tx.note(row.pk, hold=error.code, hold_reason=error.sentence)
    return True
