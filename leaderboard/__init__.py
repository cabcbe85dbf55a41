"""Score matrix and submission facts to standings and files."""

from leaderboard.figures import Private
from leaderboard.snapshot import (
    Board,
    Entry,
    MoveKind,
    PhaseSite,
    PhaseSnapshot,
    Rules,
    Selection,
    Site,
    Standing,
    WaitingTeam,
)

__all__ = [
    "Board",
    "Entry",
    "MoveKind",
    "PhaseSite",
    "PhaseSnapshot",
    "Private",
    "Rules",
    "Selection",
    "Site",
    "Standing",
    "WaitingTeam",
]
