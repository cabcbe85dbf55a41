"""Turn the score matrix and facts about submissions into standings and published files."""

from leaderboard.rules import PhaseRules, Rounding, Selection, Shown, StatedRules
from leaderboard.snapshot import (
    Board,
    Decision,
    DecisionKind,
    Entry,
    Method,
    MoveKind,
    PhaseSite,
    PhaseSnapshot,
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
    "PhaseRules",
    "PhaseSite",
    "PhaseSnapshot",
    "Rounding",
    "Selection",
    "Shown",
    "Site",
    "Standing",
    "StatedRules",
    "Terms",
    "WaitingTeam",
]
