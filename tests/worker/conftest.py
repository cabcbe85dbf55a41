"""Shared fixtures: a challenge whose clock the test moves, and one in real time for child processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, Harness, StepWorker, score_ahead
from tests.worker.harness.postgres_server import ON_POSTGRES, Server, server
from worker.sandbox import ManualClock


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    """Let all children of this session share one cache of compiled kernels."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of what most tests submit, computed by the first process that needs them."""
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else None
    place = (shared or tmp_path_factory.mktemp("cells")) / "neuco-cells.json"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
            with Harness(tmp_path_factory.mktemp("ahead")) as harness:
                score_ahead(harness, place)
    return place


@pytest.fixture
def clock() -> ManualClock:
    """The clock of a challenge; a module in which commands use the real clock has that of :func:`today`."""
    return ManualClock()


@pytest.fixture
def changes() -> dict[str, Any]:
    """The changes of the configuration that a module's challenges begin with."""
    return {}


@pytest.fixture
def harness(
    tmp_path: Path, cells: Path, clock: ManualClock, changes: dict[str, Any], fork_server: ForkServer
) -> Iterator[Harness]:
    """A challenge with a clock that only the test moves."""
    with Harness(tmp_path, clock=clock, changes=changes, cells=cells, fork_server=fork_server) as harness:
        yield harness


@pytest.fixture(scope="session")
def fork_server() -> ForkServer:
    """A process that starts workers and commands quickly."""
    return ForkServer()


@pytest.fixture
def live(tmp_path: Path, cells: Path, fork_server: ForkServer) -> Iterator[Harness]:
    """A challenge in real time."""
    with Harness(tmp_path, cells=cells, fork_server=fork_server) as harness:
        yield harness


@pytest.fixture
def worker(harness: Harness) -> Iterator[StepWorker]:
    """A worker in this process, on that challenge."""
    with harness.worker() as worker:
        yield worker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL server."""
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRES)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'worker.db'}"
    running: Server = request.getfixturevalue("postgres")
    return running.url(running.fresh())
