"""The soak test: ``python -m tests.soak [SUBMISSIONS [TEAMS [KILLS]]]``.

It prints its figures, and fails if a submission was lost or got two different answers.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path

import psutil

from tests.soak.chaos import prepared, worker
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, score_ahead

FLAT = 1.25  # the worker's memory may not grow by more


def main(arguments: list[str]) -> int:
    """Run it; return 1 if a submission was lost or got two answers, or if the memory grew."""
    submissions, teams, kills = (*map(int, arguments), *(2000, 40, 40)[len(arguments) :])
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    print(  # noqa: T201 - the figures are what this command is for
        f"{platform.machine()}, {os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"Python {platform.python_version()}, Linux {platform.release()}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("ahead", "stage"):
            (folder / part).mkdir()
        score_ahead(folder / "ahead", folder / "cells.json")
        with ForkServer() as fork_server, prepared(folder / "stage", folder / "cells.json") as harness:
            result = worker(
                harness,
                fork_server,
                submissions=submissions,
                teams=teams,
                kills=kills,
                seed=1,
                waiting=25,
                limit_s=6 * submissions,
                told=print,
            )
    print(result)  # noqa: T201
    grown = result.memory_end > FLAT * result.memory_begin
    return int(bool(result.lost or result.differing or grown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
