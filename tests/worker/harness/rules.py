"""The rules of phases in tests."""

from __future__ import annotations

from typing import Any

from leaderboard.ranking import REPLICATES
from worker.challenge.records import PhaseRules


def phase_rules(**changes: Any) -> PhaseRules:
    """Return the rules that the configuration gives by default, with changes."""
    defaults: dict[str, Any] = {
        "selection": "last",
        "eligible_if_scored_in": None,
        "baselines": (),
        "baselines_weigh": True,
        "ghost_task": 0.0,
        "decimals": 3,
        "ladder_step": None,
        "shown": "at_once",
        "replicates": REPLICATES,
    }
    return PhaseRules(**defaults | changes)
