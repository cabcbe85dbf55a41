"""The states of a submission, and the table of the transitions between them.

The usual path is received → acknowledged → fetched → scoring → scored → posted → published. From acknowledged or scoring, a wrong
file leads to rejected → failed. The other transitions are explained at :data:`TRANSITIONS`.

A submission can be superseded (re-run under a new pk) from every other state, and cancelled until its answer has left. Waiting (for
the network, an organizer, the answer grid) is never a state of its own: ``not_before`` and, if a person must act, ``hold`` are stored
with the state. ``uploading`` is a state because nothing is pending during it: the submission needs no answer and takes no turn, and a
drain can end without it.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a submission."""

    RECEIVED = "received"
    """Known by its pk; its facts have not been read yet."""
    ACKNOWLEDGED = "acknowledged"
    """Its facts are stored in the database."""
    UPLOADING = "uploading"
    """A large upload is under way: EvalAI shows a placeholder instead of the file. Nobody is to be answered yet."""
    FETCHED = "fetched"
    """Its file is stored here."""
    SCORING = "scoring"
    """EvalAI shows `running`; an attempt is open."""
    SCORED = "scored"
    """Its cells are durable; the answer is due."""
    POSTED = "posted"
    """EvalAI has accepted the answer; the board may not include it yet."""
    PUBLISHED = "published"
    """The board in the repository includes it."""
    REJECTED = "rejected"
    """The file is wrong; the answer is due."""
    FAILED = "failed"
    """EvalAI has accepted the message about the fault."""
    CANCELLED = "cancelled"
    """Cancelled or deleted at EvalAI before an answer left, or ended there before this worker saw it."""
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
    State.PUBLISHED: frozenset({State.SCORED, State.SUPERSEDED}),
    State.REJECTED: frozenset({State.FAILED, State.CANCELLED, State.SUPERSEDED}),
    State.FAILED: frozenset({State.ACKNOWLEDGED, State.REJECTED, State.SUPERSEDED}),
    State.CANCELLED: frozenset({State.ACKNOWLEDGED, State.SUPERSEDED}),
    State.SUPERSEDED: frozenset(),
}
"""The states that may follow each state.

These transitions go backwards on purpose: scoring → fetched (the attempt died); fetched → acknowledged (the stored file is gone);
posted or published → scored and failed → rejected (somebody reset the submission at EvalAI, so the same answer is posted once more, or
the answer itself has changed); failed or cancelled → acknowledged (a host resumed it, or its upload was finished after all);
acknowledged → failed (the upload was not finished after all); uploading → acknowledged (its message came, or another look at the file
has ended).
"""

ACTIVE = frozenset(
    {State.RECEIVED, State.ACKNOWLEDGED, State.FETCHED, State.SCORING, State.SCORED, State.REJECTED}
)
"""States in which the participant still needs an answer."""

UNFINISHED = ACTIVE | {State.UPLOADING, State.POSTED}
"""States that the worker still has to change."""

DECIDED = frozenset({State.SCORED, State.REJECTED})
"""States in which the answer is decided, and is due at EvalAI."""

UNSCORED = ACTIVE - DECIDED | {State.UPLOADING}
"""States in which what is answered is not decided yet."""

ANSWERED = frozenset({State.POSTED, State.PUBLISHED, State.FAILED})
"""States in which EvalAI has our answer."""

COUNTED = frozenset({State.POSTED, State.PUBLISHED})
"""States whose score may be on the board."""


class Outcome(StrEnum):
    """How an attempt to score a submission ended."""

    DONE = "done"
    PARTICIPANT = "participant"
    FAILED = "failed"
    """Through no fault of the author."""
    DEADLINE = "deadline"
    MEMORY = "memory"
    SIGNAL = "signal"
    CANCELLED = "cancelled"
    """The submission was cancelled, the phase was recorded again, or the worker was stopped meanwhile."""
    DEAD = "dead"
    """Found open at the start: the worker that made it no longer runs."""
