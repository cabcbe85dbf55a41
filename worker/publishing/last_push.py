"""The last push: its commit, and alerts about what others have done to the branch since."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta

from leaderboard.git import Published
from worker.challenge.configuration import Configuration
from worker.fairness.register import note
from worker.state import Transaction

OVERWRITTEN = "leaderboard.overwritten"
REWRITTEN = "leaderboard.rewritten"
LASTS = timedelta(days=1)
"""How long an alert stays after its cause was fixed."""
_LAST_COMMIT = "last_commit"


def last_commit(tx: Transaction, configuration: Configuration) -> str | None:
    """Return the commit that was last pushed to the configured branch; None if none was, or another branch is configured now."""
    last = json.loads(tx.fact(_LAST_COMMIT) or "{}")
    return last.get("commit") if last.get("place") == _place(configuration) else None


def record_commit(
    tx: Transaction,
    configuration: Configuration,
    published: Published,
    *,
    now: datetime,
) -> None:
    """Record the pushed commit, and report what others had done to the branch.

    Args:
        tx: Where it is kept.
        configuration: Names the branch.
        published: What the branch shows now.
        now: The time.
    """
    if published.rewritten:
        _tell_rewritten(tx, last_commit(tx, configuration) or "", now=now)
    if published.others:
        tx.raise_alert(
            OVERWRITTEN,
            OVERWRITTEN,
            f"Someone else changed the worker's files in the leaderboard's repository ({published.others}). The worker has restored"
            " them. Find out who it was, and allow only the worker's account to push to the branch.",
            now=now,
        )
    for alert in tx.alerts():
        if alert.key in (OVERWRITTEN, REWRITTEN) and alert.seen_at <= now - LASTS:
            tx.resolve_alert(alert.key, now=now)
    if published.changed or published.rewritten:
        pushed = {"place": _place(configuration), "commit": published.commit}
        tx.set_fact(_LAST_COMMIT, json.dumps(pushed))


def _tell_rewritten(tx: Transaction, last: str, *, now: datetime) -> None:
    """Raise the alert and register the rewrite, which anyone with an older clone can see anyway."""
    event = f"The history of the leaderboard's branch was rewritten: commit {last[:10]}, which was pushed last, was no longer in it."
    tx.raise_alert(
        REWRITTEN,
        REWRITTEN,
        f"{event} The worker pushed everything again. Find out who forced a push, and protect the branch against forced pushes.",
        now=now,
    )
    note(tx, "rewritten", event, now=now, commit=last)
    tx.log("rewritten", actor="worker", now=now, commit=last)


def _place(configuration: Configuration) -> str:
    address = f"{configuration.repository_url}\0{configuration.leaderboard.branch}"
    return hashlib.sha256(address.encode()).hexdigest()
