"""The session with EvalAI: what this process learned from it since its start, and what nothing is lost with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from worker.intake.connection import Remote
from worker.state import SubmissionRow

# For so long what is new gathers for one listing, while others are worked on.
TOGETHER = timedelta(seconds=10)


@dataclass(kw_only=True)
class Session:
    """What EvalAI told this process.

    Attributes:
        remote: Our challenge and its phases; None before the first words.
        outdated: Whether the configuration was read again since: token and phases may be others.
        empty_polls: How often in a row it was empty.
        stale_message: Whether the last message told nothing new; more of its kind may be behind it.
        call_began_at: When the last call that EvalAI answered began; see :meth:`told_at`.
        call_ended_at: When its answer came.
        silent_since: When EvalAI began to give no usable answer; None while it answers.
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
        """Whether EvalAI has told us our phases, as they are configured now."""
        return self.remote is not None and not self.outdated

    def told_at(self, row: SubmissionRow) -> datetime | None:
        """Return when EvalAI's last words on a submission came.

        The database records when it was asked: what was decided by then is settled, whatever came while the answer was on its way.
        Its age counts from when it came, otherwise a slow call would be repeated indefinitely.
        """
        return self.call_ended_at if row.read_at == self.call_began_at else row.read_at
