"""Turns: which team's submission comes next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from worker.state import SubmissionRow, Transaction

_NEVER = datetime.min.replace(tzinfo=UTC)


def next_in_turn(tx: Transaction, waiting: Sequence[SubmissionRow]) -> SubmissionRow | None:
    """Choose round-robin between teams, oldest first within a team, so that ten files of one team do not delay another team's first."""
    if not waiting:
        return None
    turns = tx.last_turns()
    return min(waiting, key=lambda row: (turns.get(row.team_key or 0, _NEVER), row.submitted_at, row.pk))
