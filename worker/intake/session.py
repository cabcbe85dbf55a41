"""What this process has learned from EvalAI since its start; losing it costs nothing but calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from worker.intake.connection import Remote
from worker.state import SubmissionRow

# How long new submissions are collected for one listing while others are worked on.
TOGETHER = timedelta(seconds=10)


@dataclass(kw_only=True)
class Session:
    """What EvalAI told this process.

    Attributes:
        remote: Our challenge and its phases; None before they were read.
        outdated: Whether the configuration was reloaded since, so that the token and the phases may have changed.
        empty_polls: How many polls in a row found the queue empty.
        stale_message: Whether the last message contained nothing new, so that more such messages may follow.
        call_began_at: When the last call that EvalAI answered began; see :meth:`told_at`.
        call_ended_at: When its answer came.
        silent_since: Since when EvalAI has given no usable answer; None while it answers.
    """

    remote: Remote | None = None
    outdated: bool = False
    empty_polls: int = 0
    stale_message: bool = False
    call_began_at: datetime | None = None
    call_ended_at: datetime | None = None
    silent_since: datetime | None = None

    @property
    def connected(self) -> bool:
        """Whether our phases were read, and the configuration has not changed since."""
        return self.remote is not None and not self.outdated

    def told_at(self, row: SubmissionRow) -> datetime | None:
        """Return when EvalAI's last facts about a submission arrived.

        The database records when EvalAI was asked, because only what was decided before that moment is certain to be included. The age of
        the facts counts from their arrival; otherwise a slow call would be repeated indefinitely.
        """
        return self.call_ended_at if row.read_at == self.call_began_at else row.read_at
