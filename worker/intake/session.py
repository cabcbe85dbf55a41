"""The session with EvalAI: what this process learned from it since its start, and what nothing is lost with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from worker.connection import Remote

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
        wanted: The submission that is to be set to running.
        silent_since: When EvalAI began to give no usable answer; None while it answers.
    """

    remote: Remote | None = None
    outdated: bool = False
    empty_polls: int = 0
    stale_message: bool = False
    wanted: int | None = None
    silent_since: datetime | None = None

    @property
    def connected(self) -> bool:
        """Whether EvalAI has told us our phases, as they are configured now."""
        return self.remote is not None and not self.outdated
