"""Turn the score matrix and facts about submissions into standings and published files.

``rank`` ranks any table by dynamic rank. It is imported on first use, because a process that only scores does not need it.
"""

from typing import TYPE_CHECKING, Any

from leaderboard.figures import Private
from leaderboard.snapshot import (
    Board,
    Decision,
    DecisionKind,
    Entry,
    Method,
    MoveKind,
    PhaseSite,
    PhaseSnapshot,
    Rules,
    Selection,
    Site,
    Standing,
    Terms,
    WaitingTeam,
)

if TYPE_CHECKING:
    from leaderboard.ranking import rank

__all__ = [
    "Board",
    "Decision",
    "DecisionKind",
    "Entry",
    "Method",
    "MoveKind",
    "PhaseSite",
    "PhaseSnapshot",
    "Private",
    "Rules",
    "Selection",
    "Site",
    "Standing",
    "Terms",
    "WaitingTeam",
    "rank",
]


def __getattr__(name: str) -> Any:
    """Load the dynamic rank."""
    if name != "rank":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from leaderboard.ranking import rank

    return rank
