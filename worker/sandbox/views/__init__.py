"""EvalAI's endpoints, one module per noun."""

from __future__ import annotations

from worker.sandbox.views import (
    account,
    challenge,
    evaluation,
    leaderboard,
    listing,
    practice,
    queue,
    submission,
    upload,
)

BLUEPRINTS = tuple(
    module.views
    for module in (account, challenge, evaluation, leaderboard, listing, practice, queue, submission, upload)
)
ANONYMOUS = frozenset(
    {"leaderboard.public", "challenge.one_phase", "challenge.phase_splits", "practice.teams"}
)
"""Endpoints that need no token, but refuse an invalid one."""
UNTHROTTLED = frozenset(
    {"leaderboard.all_entries", "challenge.one_phase", "challenge.phase_splits", "practice.teams"}
)
"""Endpoints that do not count against the rate limit."""

__all__ = ["ANONYMOUS", "BLUEPRINTS", "UNTHROTTLED", "leaderboard"]
