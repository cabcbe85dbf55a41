"""EvalAI's endpoints, one module per noun."""

from __future__ import annotations

from worker.sandbox.views import challenge, submission

BLUEPRINTS = (challenge.views, submission.views)
OPEN = frozenset({"challenge.one_phase", "challenge.phase_splits", "challenge.teams"})
ANONYMOUS = OPEN | {"challenge.leaderboard"}
"""Endpoints that need no token, but refuse an invalid one."""
UNTHROTTLED = OPEN | {"challenge.all_entries"}
"""Endpoints that do not count against the rate limit."""

__all__ = ["ANONYMOUS", "BLUEPRINTS", "UNTHROTTLED"]
