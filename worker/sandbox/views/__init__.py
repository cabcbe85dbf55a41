"""EvalAI's endpoints, one module per noun."""

from __future__ import annotations

from worker.sandbox.views import (
    account,
    challenge,
    evaluation,
    leaderboard,
    listing,
    queue,
    submission,
    upload,
)

ROUTES = (
    *account.ROUTES,
    *queue.ROUTES,
    *challenge.ROUTES,
    *submission.ROUTES,
    *upload.ROUTES,
    *listing.ROUTES,
    *evaluation.ROUTES,
    *leaderboard.ROUTES,
)

__all__ = ["ROUTES"]
