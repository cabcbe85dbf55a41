"""What the two acts of a publish cycle have in common: reporting a failure."""

from __future__ import annotations

from datetime import datetime

from leaderboard.git import Publisher
from scoring.errors import NeucoError, OrganizerError
from worker.challenge.context import Context
from worker.runtime import Act, Result
from worker.state import Transaction

VAIN_TRIES = 3  # after which the organizer is told


class PublishAct(Act[Publisher, Result]):
    """An act of a publish cycle.

    Args:
        context: The worker's surroundings.
        generation: The cycle's number, for callers that wait for it.
        tries: How many cycles in a row failed before this one.
    """

    def __init__(self, context: Context, generation: int, *, tries: int) -> None:
        self._context = context
        self._generation = generation
        self._tries = tries

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell callers that wait for the cycle and, if failures go on, the organizer; the cycle is made again."""
        tx.fail_publish(self._generation, error)
        if isinstance(error, OrganizerError) or self._tries + 1 >= VAIN_TRIES:
            self._context.report(tx, "leaderboard.push", error, now=now)
