"""Scores of PyTorch are verified with the compiled kernel."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worker.harness.harness import Harness, StepWorker
from worker.fairness.verify import Worth
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts


@pytest.fixture
def cells() -> None:
    """Nothing is scored ahead, because that is done with the kernel."""


@pytest.fixture
def changes() -> dict[str, Any]:
    """PyTorch scores, and all files are published."""
    return {"scoring": {"engine": "torch"}, "fairness": {"publish_files": "all"}}


def test_scores_of_torch_are_verified_with_the_kernel(harness: Harness, worker: StepWorker) -> None:
    """The cell says which engine made it, and both engines agree."""
    harness.submit()
    worker.drive()
    with worker.store.read() as tx:
        assert {cell.engine for cell in tx.all_cells()} == {"torch"}
    harness.decide("board", "freeze", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "reveal", "--yes")
    with opened(str(harness.board)) as repository:
        worths = {one.worth: one.submissions for one in published_verdicts(repository)}
    assert harness.contradictions() == []
    assert Worth.CONTRADICTED not in worths
    assert worths[Worth.RECOMPUTED]
