"""A challenge that an earlier version ran and left in the middle of a phase continues with this version, without a contradiction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.worker.harness.harness import Harness, StepWorker
from tests.worker.upgrade.challenge import take_up
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.sandbox import ManualClock
from worker.state import ANSWERED

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "state.sql").exists())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def continued(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, StepWorker]]:
    """A kept challenge with a present-day worker, ten minutes after the old one died."""
    kept: Path = request.param
    died = max(
        datetime.fromisoformat(one["submitted_at"]) for one in json.loads((kept / "evalai.json").read_text())
    )
    with Harness(tmp_path, clock=ManualClock(died + timedelta(minutes=10))) as harness:
        take_up(harness, kept)
        with harness.worker() as worker:
            yield kept, worker


def test_a_challenge_goes_on_and_is_not_contradicted(continued: tuple[Path, StepWorker]) -> None:
    """Open submissions are answered once, answered ones are left alone, and the repository verifies after the reveal."""
    kept, worker = continued
    harness = worker.harness
    before = {one["pk"]: one["status"] for one in json.loads((kept / "evalai.json").read_text())}
    old_commits = harness.commits()
    worker.drive()
    open_then = {pk for pk, status in before.items() if status in ("submitted", "running")}
    assert len(open_then) >= 6
    assert set(harness.evalai.journal.posts()) == open_then
    assert all(len(harness.posts(pk)) == 1 for pk in open_then)
    assert {pk: harness.status(pk) for pk in before if pk not in open_then} == {
        pk: status for pk, status in before.items() if pk not in open_then
    }
    assert {worker.state(pk) for pk in open_then} <= ANSWERED
    later = harness.submit("H", b"id,0\nimg_000,1\n")
    worker.drive()
    assert harness.status(later) == "failed"
    assert harness.commits() > old_commits
    assert {"A", "B", "C", "D", "F", "G"} <= set(harness.teams())
    worker.stop()
    try:
        for phase in ("dev", "eval"):
            done = harness.command("board", "freeze", "--phase", phase)
            assert done.returncode == 0, done.stderr
        done = harness.command("challenge", "reveal", "--yes")
        assert done.returncode == 0, done.stderr
        with opened(str(harness.board)) as repository:
            found = list(verdicts(repository))
        assert [verdict.sentence for verdict in found if verdict.worth is Worth.CONTRADICTED] == []
    finally:
        worker.start()
