"""The ray engine, on a cluster of two nodes on this machine, gives the local engine's bits even if nodes or processes are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.engines import LocalEngine, Unit
from scoring.errors import OrganizerError
from tests.later import Later
from tests.scoring.engines.units import make_unit
from tests.waiting import LIMIT_S, until
from worker.sandbox import ManualClock
from worker.state import State, schema

ray = Later("ray")

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="an extra, of which this platform has no package"),
    pytest.mark.xdist_group("ray"),  # one cluster
    pytest.mark.filterwarnings("ignore"),  # ray's own, of every version another
    pytest.mark.slow,
]

STORE_BYTES = 100 * 2**20


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a cluster of a head with one core and a second node with two, once, without usage reports."""
    from ray._private import services
    from ray.cluster_utils import Cluster

    look_up = services.get_node

    def get_node(*arguments: Any) -> Any:
        """Wait for a node that has just been started; ray itself gives up after 30 seconds, and leaves its processes behind."""
        found: list[Any] = []

        def is_there() -> bool:
            with suppress(RuntimeError):
                found.append(look_up(*arguments))
            return bool(found)

        until(is_there)
        return found[0]

    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    options: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(shutdown_at_exit=False)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(services, "get_node", get_node)
            cluster.add_node(wait=False, include_dashboard=False, **options)
            cluster.add_node(wait=False, **{**options, "num_cpus": 2})
            cluster.wait_for_nodes(timeout=LIMIT_S)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def engine(address: str) -> Any:
    """The engine, connected."""
    from scoring.engines.ray import RayEngine

    return RayEngine(address=address)


def small_unit(folds: int = 9) -> Unit:
    """Three tasks, an odd number of folds, a dimension that needs padding, and groups of rows."""
    return make_unit(samples=90, dim=37, types="rcr", folds=folds, groups=7)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeadlyUnit(Unit):
    """A unit that kills the first process that reads it to score folds of it.

    Attributes:
        deadly: A file that exists until a process was killed.
    """

    deadly: Path

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with suppress(FileNotFoundError):  # another process has removed it
            self.deadly.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def test_ray_gives_the_local_bits(engine: Any) -> None:
    """Two nodes, one submission after the other: the same float64 values as one thread here."""
    for folds in (1, 9, 23):
        unit = small_unit(folds)
        done: list[int] = []
        assert np.array_equal(engine.score(unit, progress=done.append), LocalEngine(threads=1).score(unit))
        assert sum(done) == 3 * folds
    aligned = make_unit(samples=72, dim=64, types="rc", folds=4)
    assert np.array_equal(engine.score(aligned), LocalEngine(threads=1).score(aligned))


def test_the_folds_of_a_killed_process_are_scored_again(engine: Any, tmp_path: Path) -> None:
    """Ray starts another process for them."""
    unit, deadly = small_unit(folds=23), tmp_path / "deadly"
    deadly.touch()
    scores = engine.score(DeadlyUnit(**vars(unit), deadly=deadly))
    assert not deadly.exists()
    assert np.array_equal(scores, LocalEngine(threads=1).score(unit))


def test_an_unreachable_cluster_is_an_infrastructure_error() -> None:
    """A missing head gives an error with a sentence, in a separate process that has no connection yet."""
    code = (
        "from scoring.engines.registry import make_engine\n"
        "from scoring.errors import InfrastructureError\n"
        "try: make_engine('ray', ray_address='127.0.0.1:1')\n"
        "except InfrastructureError as error: raise SystemExit(0 if error.code == 'engine.ray_unreachable' else 3)\n"
        "raise SystemExit(4)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_software_on_the_cluster_is_named_with_both_versions(engine: Any, address: str) -> None:
    """Of a node by its answer, and of the whole cluster by Ray, in a process that has no connection yet."""
    from scoring.engines import ray as ours

    assert {"Python", "numba", "NumPy"} < ours.software().keys()
    answer = ray.put(({**ours.software(), "numba": "0.1"}, np.zeros((1, 1))))
    with pytest.raises(OrganizerError, match=r"numba 0\.1 there, ") as error:
        ours._result(answer)
    assert error.value.code == "engine.ray_version"
    code = (
        "from ray._private import utils\n"
        "utils.compute_version_info = lambda: ('0.0.1', '3.0.0')\n"
        "from scoring.engines.registry import make_engine\n"
        "from scoring.errors import OrganizerError\n"
        f"try: make_engine('ray', ray_address='{address}')\n"
        "except OrganizerError as error: print(error.code, error.sentence)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout.startswith("engine.ray_version"), done.stderr
    assert f"Ray: {version('ray')}" in done.stdout
    assert "Ray: 0.0.1" in done.stdout


def test_the_worker_has_several_submissions_scored_on_the_cluster(address: str, tmp_path: Path) -> None:
    """Several evaluations share the cluster."""
    from tests.worker.evaluation.test_at_once import Held
    from tests.worker.harness.harness import NEW, Harness, embeddings, stored

    scoring = {"engine": "ray", "ray_address": address, "at_once": 2}
    with (
        Harness(tmp_path, clock=ManualClock(), changes={"scoring": scoring}) as harness,
        Held(harness, 2) as held,
    ):
        worker = held.worker
        pks = [harness.submit(team, embeddings(NEW + number)) for number, team in enumerate("AB")]
        worker.drive(lambda: len(held.pks) == 2)
        held.let_go()
        worker.drive(lambda: all(worker.states().get(pk) == State.PUBLISHED for pk in pks))
        with worker.store.read() as tx:
            cells = stored(tx, schema.cells)
    assert {cell["provenance"]["versions"]["engine"] for cell in cells} == {"ray"}
