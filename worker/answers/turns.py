"""Turns: which submissions may be scored now, and which team's comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from worker.challenge.configuration import Configuration
from worker.fairness import commitments
from worker.state import SubmissionRow, Transaction

_NEVER = datetime.min.replace(tzinfo=UTC)


def is_early(configuration: Configuration, row: SubmissionRow, now: datetime) -> bool:
    """Return whether a submission waits for the opening of its phase: all do of which it is not known that a host sent them."""
    phase = configuration.phases.get(row.phase or "")
    return phase is not None and phase.opens_later(now) and not row.by_host


def begun(
    tx: Transaction, configuration: Configuration, rows: Iterable[SubmissionRow], now: datetime
) -> list[SubmissionRow]:
    """Return the submissions whose phase has begun for them: it has opened, and the public random value for its splits is known."""
    undrawn = commitments.waiting(tx)
    return [row for row in rows if row.phase not in undrawn and not is_early(configuration, row, now)]


def next_in_turn(tx: Transaction, waiting: Sequence[SubmissionRow]) -> SubmissionRow | None:
    """Choose round-robin between teams, so that ten files of one team do not delay another team's first.

    Within a team, the oldest comes first, but re-runs come last, because anybody may make any number of them.
    """
    if not waiting:
        return None
    turns = tx.last_turns()
    return min(
        waiting,
        key=lambda row: (turns.get(row.team_key or 0, _NEVER), row.is_rerun, row.submitted_at, row.pk),
    )
