"""Fixtures of this room: a stage whose clock the test moves, and one in real time for processes of their own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.harness.fork_server import Nursery
from tests.worker.harness.harness import WARM_CACHE, Play, Stage, score_ahead
from worker.sandbox import ManualClock


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    """Let all children of this session share one cache of compiled kernels."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of what most plays submit; made by the first of all processes that needs them."""
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else None
    place = (shared or tmp_path_factory.mktemp("cells")) / "neuco-cells.json"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
            score_ahead(tmp_path_factory.mktemp("ahead"), place)
    return place


@pytest.fixture
def stage(tmp_path: Path, cells: Path) -> Iterator[Stage]:
    """A stage under a clock that stands still unless it is moved."""
    with Stage(tmp_path, clock=ManualClock(), cells=cells) as stage:
        yield stage


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that starts workers and commands quickly."""
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def live(tmp_path: Path, cells: Path, nursery: Nursery) -> Iterator[Stage]:
    """A stage in real time."""
    with Stage(tmp_path, cells=cells, nursery=nursery) as stage:
        yield stage


@pytest.fixture
def play(stage: Stage) -> Iterator[Play]:
    """A worker in this process on the stage."""
    with stage.play() as play:
        yield play
