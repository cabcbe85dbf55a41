"""Turn the score matrix and facts about submissions into standings and published files."""

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

__all__ = [
    "Board",
    "Decision",
    "DecisionKind",
    "Entry",
    "Method",
    "MoveKind",
    "PhaseSite",
    "PhaseSnapshot",
    "Rules",
    "Selection",
    "Site",
    "Standing",
    "Terms",
    "WaitingTeam",
]
