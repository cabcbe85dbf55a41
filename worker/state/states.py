"""The states of a submission, and the one table of transitions between them.

::

    received → acknowledged → fetched → scoring → scored → posted → published
                 ↓↑  ↓            ↓          ↓
            uploading└────────→ rejected → failed

``cancelled`` can be reached from every state before an answer left, ``superseded`` (re-run under a new
pk) from every state. Waiting (for the network, an organizer, the answer grid) is never a state of its
own: it is a ``not_before`` and, if a person must act, a ``hold`` beside the state. ``uploading`` is one
because nothing is owed there: no answer, no turn, no end of a drain depends on it.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a submission."""

    RECEIVED = "received"
    """Known by its pk; its facts are not read yet."""
    ACKNOWLEDGED = "acknowledged"
    """Its facts are durable here; the queue's message may go."""
    UPLOADING = "uploading"
    """A large upload that is under way: EvalAI shows a placeholder where its file will be. Nothing is owed to anybody yet."""
    FETCHED = "fetched"
    """Its file is stored here."""
    SCORING = "scoring"
    """EvalAI shows `running`; an attempt is open."""
    SCORED = "scored"
    """Its cells are durable; the answer is due."""
    POSTED = "posted"
    """EvalAI has accepted the answer; the board may not know yet."""
    PUBLISHED = "published"
    """The board in the repository takes it into account."""
    REJECTED = "rejected"
    """The file is wrong; the answer is due."""
    FAILED = "failed"
    """EvalAI has accepted the fault."""
    CANCELLED = "cancelled"
    """Cancelled or deleted at EvalAI before an answer left, or answered by somebody else."""
    SUPERSEDED = "superseded"
    """Re-run at EvalAI under a new pk."""


TRANSITIONS: dict[State, frozenset[State]] = {
    State.RECEIVED: frozenset({State.ACKNOWLEDGED, State.CANCELLED, State.SUPERSEDED}),
    State.ACKNOWLEDGED: frozenset(
        {
            State.UPLOADING,
            State.FETCHED,
            State.REJECTED,
            State.FAILED,
            State.CANCELLED,
            State.SUPERSEDED,
        }
    ),
    State.UPLOADING: frozenset({State.ACKNOWLEDGED, State.CANCELLED, State.SUPERSEDED}),
    State.FETCHED: frozenset({State.ACKNOWLEDGED, State.SCORING, State.CANCELLED, State.SUPERSEDED}),
    State.SCORING: frozenset(
        {State.FETCHED, State.SCORED, State.REJECTED, State.CANCELLED, State.SUPERSEDED}
    ),
    State.SCORED: frozenset({State.POSTED, State.CANCELLED, State.SUPERSEDED}),
    State.POSTED: frozenset({State.PUBLISHED, State.SCORED, State.SUPERSEDED}),
    State.PUBLISHED: frozenset({State.SCORED, State.POSTED, State.SUPERSEDED}),
    State.REJECTED: frozenset({State.FAILED, State.CANCELLED, State.SUPERSEDED}),
    State.FAILED: frozenset({State.ACKNOWLEDGED, State.REJECTED, State.SUPERSEDED}),
    State.CANCELLED: frozenset({State.ACKNOWLEDGED, State.SUPERSEDED}),
    State.SUPERSEDED: frozenset(),
}
"""From each state to the states that may follow.

Backwards on purpose: scoring → fetched (the attempt died), fetched → acknowledged (the stored file is gone), posted or published →
scored and failed → rejected (somebody set the submission back at EvalAI: the same answer is posted once more), failed or cancelled →
acknowledged (a host resumed it, or its upload was finished after all), acknowledged → failed (it was not), uploading → acknowledged (its
message came, or it is time to look at the file again), published → posted (its visibility, name or flag changed: the board is due again).
"""

ACTIVE = frozenset(
    {State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORING, State.SCORED, State.REJECTED}
)
"""States that still owe the participant an answer."""

ANSWERED = frozenset({State.POSTED, State.PUBLISHED, State.FAILED})
"""States in which EvalAI has our answer."""

COUNTED = frozenset({State.POSTED, State.PUBLISHED})
"""States whose score may be on the board."""


class Attempt(StrEnum):
    """What is tried in a process of its own."""

    FETCH = "fetch"
    EVALUATE = "evaluate"


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    PARTICIPANT = "participant"
    ORGANIZER = "organizer"
    INFRASTRUCTURE = "infrastructure"
    DEADLINE = "deadline"
    MEMORY = "memory"
    SIGNAL = "signal"
    CANCELLED = "cancelled"
    """The submission was cancelled, or the phase was recorded again meanwhile."""
    SHUTDOWN = "shutdown"
    UNFINISHED = "unfinished"
    """The file was EvalAI's placeholder for a large upload; it is looked at again."""
    DEAD = "dead"
    """Found open at start: the worker that made it is gone."""


class OutboxKind(StrEnum):
    """What is owed to the outside, kept in the outbox until it is done."""

    POST = "post"
    DELETE = "delete"
