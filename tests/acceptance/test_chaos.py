"""Random kills, spoilt answers, duplicated and reordered messages: nothing is lost, nothing is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.chaos import prepared, worker
from tests.worker.harness.fork_server import ForkServer


@pytest.mark.timeout(900)
def test_chaos_loses_nothing_and_contradicts_nothing(
    tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """50 submissions, 20 kills at random moments, every fifth answer spoilt: each has one distinct result."""
    with prepared(tmp_path, cells) as harness:
        figures = worker(
            harness, fork_server, submissions=50, teams=7, kills=20, seed=3, waiting=12, limit_s=800
        )
        print(f"\n{figures}")  # noqa: T201 - shown by pytest -rA, and with a failure
        assert figures.submissions == 50
        assert figures.lost == 0
        assert figures.differing == 0
        assert figures.faults > 20  # about 70: how many calls are made depends on when the kills come
        assert harness.evalai.queue_length() == 0
