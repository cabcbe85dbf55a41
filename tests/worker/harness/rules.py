"""The rules of phases in tests."""

from __future__ import annotations

from typing import Any

from leaderboard import PhaseRules


def phase_rules(**changes: Any) -> PhaseRules:
    """Return the rules that the configuration gives by default, but no baselines, with changes."""
    return PhaseRules(**{"baselines": (), **changes})
