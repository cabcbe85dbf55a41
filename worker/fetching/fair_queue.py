"""The fair queue: whose submission is next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from worker.state import Tracked, Transaction

_NEVER = datetime.min.replace(tzinfo=UTC)


def next_in_turn(tx: Transaction, waiting: Sequence[Tracked]) -> Tracked | None:
    """Choose round-robin between teams, oldest first within a team, so that ten files of one team do not hold up another's first."""
    if not waiting:
        return None
    turns = tx.last_turns()
    return min(
        waiting, key=lambda known: (turns.get(known.team_key or 0, _NEVER), known.submitted_at, known.pk)
    )
