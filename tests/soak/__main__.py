"""The soak test: ``python -m tests.soak [SUBMISSIONS [TEAMS [KILLS]]]``.

It prints its figures, and fails if a submission was lost or got two different answers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.soak.chaos import prepared, worker
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, Harness, score_ahead

FLAT = 1.25  # the worker's memory may not grow by more


def main(arguments: list[str]) -> int:
    """Run it; return 1 if a submission was lost or got two answers, or if the memory grew."""
    submissions, teams, kills = (*map(int, arguments), *(2000, 40, 40)[len(arguments) :])
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("ahead", "stage"):
            (folder / part).mkdir()
        with Harness(folder / "ahead") as harness:
            score_ahead(harness, folder / "cells.json")
        with prepared(folder / "stage", folder / "cells.json") as harness:
            figures = worker(
                harness,
                ForkServer(),
                submissions=submissions,
                teams=teams,
                kills=kills,
                seed=1,
                waiting=25,
                limit_s=6 * submissions,
            )
    print(figures)  # noqa: T201 - the figures are what this command is for
    grown = figures.memory_end > FLAT * figures.memory_begin
    return int(bool(figures.lost or figures.differing or grown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
