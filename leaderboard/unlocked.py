"""What is shown beyond the board once the organizers allow it: intervals, stable views, and the tasks themselves."""

from __future__ import annotations

from leaderboard.snapshot import PhaseSite, PhaseSnapshot, Site


def unlocked_snapshot(site: Site, phase: PhaseSite) -> PhaseSnapshot | None:
    """Return the phase's snapshot if anything beyond the board may be shown of it, else None."""
    return phase.snapshot if phase.revealed or site.publish else None
