"""What is open of a revealed phase grows with everything that depends on it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.sandbox import ManualClock

pytestmark = pytest.mark.processes


@pytest.fixture
def clock() -> ManualClock:
    """It is today, because commands use the real clock."""
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def changes() -> dict[str, Any]:
    """Phase eval requires a score in dev."""
    return {"phases": {"eval": {"eligible_if_scored_in": "dev"}}}


def test_a_private_entry_is_opened_once_the_board_of_another_phase_needs_it(
    harness: Harness, worker: StepWorker
) -> None:
    """Without the fact that it was answered, nobody could check that its team competes in a phase that comes after the reveal."""
    for team, is_public in (("A", True), ("B", False)):
        harness.submit(team, embeddings(1), is_public=is_public)
    worker.drive()
    worker.stop()
    harness.decide("challenge", "reveal", "--phase", "dev", "--open")
    worker.start()
    for number, team in enumerate("ABC"):
        harness.submit(team, embeddings(number), phase="eval")
    worker.drive()
    ranks = {row["team"]: row["rank"] is not None for row in harness.boards("eval")}
    assert ranks == {"A": True, "B": True, "C": False}
    harness.decide("challenge", "reveal", "--phase", "eval", "--open")
    assert harness.contradictions() == []
