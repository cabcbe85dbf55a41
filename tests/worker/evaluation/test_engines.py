"""Scores of PyTorch are verified with the compiled kernel."""

from __future__ import annotations

from pathlib import Path

from tests.worker.harness.harness import NEW, Harness, embeddings
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts
from worker.sandbox import ManualClock


def test_scores_of_torch_are_verified_with_the_kernel(tmp_path: Path) -> None:
    """The cell says which engine made it, and both engines agree."""
    changes = {"scoring": {"engine": "torch"}, "fairness": {"publish_files": "all"}}
    with Harness(tmp_path, clock=ManualClock(), changes=changes) as harness:
        with harness.worker() as worker:
            harness.submit("A", embeddings(NEW))
            worker.drive()
            with worker.store.read() as tx:
                assert {cell.engine for cell in tx.all_cells()} == {"torch"}
        for command in (
            ["board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test"],
            ["challenge", "reveal", "--yes", "--reason", "a test"],
        ):
            done = harness.command(*command)
            assert done.returncode == 0, done.stderr
        with opened(str(harness.board)) as repository:
            found = list(verdicts(repository))
            found += published_verdicts(repository)
    assert not [verdict for verdict in found if verdict.worth is Worth.CONTRADICTED]
    assert [verdict.submissions for verdict in found if verdict.worth is Worth.RECOMPUTED]
