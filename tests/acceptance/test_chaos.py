"""Random kills, corrupted responses, and duplicated and reordered messages lose no submission and cause no contradictory results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.chaos import prepared, worker
from tests.worker.harness.fork_server import ForkServer


@pytest.mark.timeout(900)
def test_chaos_loses_nothing_and_contradicts_nothing(
    tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """With 6 kills at random moments and every fifth response corrupted, each of 20 submissions has exactly one distinct result."""
    with prepared(tmp_path, cells) as harness:
        figures = worker(
            harness, fork_server, submissions=20, teams=7, kills=6, seed=3, waiting=12, limit_s=800
        )
        print(f"\n{figures}")  # noqa: T201 - shown by pytest -rA, and with a failure
        assert figures.submissions == 20
        assert figures.lost == 0
        assert figures.differing == 0
        assert figures.faults > 8  # about 28; the number of calls depends on the moments of the kills
        assert harness.evalai.queue_length() == 0
