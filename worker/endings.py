"""Endings: how a child that reads or scores came to its end, and who is blamed.

Limits hit while *reading* are the participant's, because a file can be made to hit them; limits hit while *scoring* are infrastructure,
because after validation the cost depends on the shape alone.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import datetime
from typing import Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError, ParticipantError
from worker import disk
from worker.state import Tracked, Transaction
from worker.states import Outcome, State

CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
CRASHES_TO_BLAME = (
    3  # a library that a file makes crash once may be bad luck; three times in a row is the file
)
READING = "reading"
"""The stage in which limits and crashes are the file's fault."""

Ending = tuple[Outcome, NeucoError]


def limit_hit(outcome: Outcome, stage: str, pk: int | None, *, fits: bool = True) -> Ending:
    """Blame a limit, deadline or memory: on the file while it is read, on us afterwards.

    Args:
        outcome: Which limit.
        stage: How far the child was.
        pk: The submission.
        fits: Whether a good file could have been read within the memory that the child had left at its start.
    """
    if outcome is Outcome.MEMORY and not fits:
        return outcome, OrganizerError(
            f"Submission {pk} cannot be read: a child without any file takes so much memory on this machine that what"
            " submission.memory_gigabytes leaves is not enough for a good file.",
            cure="Raise submission.memory_gigabytes and reload; the submission then goes on by itself.",
            code="evaluate.memory_limit",
        )
    what = "time" if outcome is Outcome.DEADLINE else "memory"
    if stage == READING:
        return outcome, ParticipantError(
            f"Reading the file took more {what} than a submission may use.",
            cure="Check that it holds one row per id and the announced number of columns, and nothing else.",
            code=f"file.{outcome}",
        )
    return outcome, InfrastructureError(
        f"Scoring submission {pk} hit the {what} limit in stage {stage!r}.",
        cure=f"Raise submission.{'deadline' if outcome is Outcome.DEADLINE else 'memory_gigabytes'}, or use a larger machine.",
        code=f"evaluate.{outcome}",
    )


def death(status: int, stage: str, pk: int | None, *, crashed_before: int) -> Ending:
    """Say how a child died that did not say it itself.

    Args:
        status: Its exit status, negative for a signal.
        stage: How far it had come.
        pk: The submission.
        crashed_before: How many earlier attempts at the submission a signal ended.
    """
    reason = f"by signal {-status}" if status < 0 else f"with exit status {status}"
    outcome = Outcome.SIGNAL if status < 0 else Outcome.INFRASTRUCTURE
    if -status in CRASHES and stage == READING and crashed_before >= CRASHES_TO_BLAME - 1:
        return outcome, ParticipantError(
            "The file cannot be read: it breaks the reader every time.",
            cure="Write it anew with a common library, or send it as CSV.",
            code="file.breaks_reader",
        )
    return outcome, InfrastructureError(
        f"The process that evaluated submission {pk} ended {reason} in stage {stage!r}.",
        cure="See the log; it is tried again.",
        code="evaluate.died",
    )


def said(message: dict[str, Any]) -> Ending:
    """Turn the error that a child reported into one of ours."""
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


def no_child(problem: OSError) -> InfrastructureError:
    """Say that the machine gave us no process."""
    if disk.is_full(problem):
        return disk.full("there is no room for the folder of a submission's process")
    return InfrastructureError(
        f"A process of its own could not be started for a submission ({problem.strerror}).",
        cure="Look at memory, disk space and the number of processes of this machine; it is tried again.",
        code="child.start",
    )


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
