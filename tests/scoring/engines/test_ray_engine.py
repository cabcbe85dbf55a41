"""The ray engine, on a cluster of two nodes on this machine, gives the local engine's bits even if nodes or actors are lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from scoring.engines import LocalEngine, Unit, fold_scheduler
from scoring.engines.fold_scheduler import Range
from scoring.errors import Cancelled
from scoring.protocol import Recipe
from scoring.scorecard import Scorecard
from tests.scoring.engines.units import make_unit
from worker.sandbox import ManualClock
from worker.state import State

ray = pytest.importorskip("ray", reason="ray is an extra, and this platform has no package of it")

pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster
    pytest.mark.filterwarnings("ignore"),  # ray's own, of every version another
    pytest.mark.slow,
]

STORE_BYTES = 100 * 2**20
LIMIT_S = 300.0


class Nodes:
    """A head of one core and a second node of two."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        options: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={"include_dashboard": False, **options},
            shutdown_at_exit=False,
        )
        self._options = {**options, "num_cpus": 2}
        self.second = self.cluster.add_node(**self._options)

    def lose_second(self) -> None:
        """Kill the second node."""
        self.cluster.remove_node(self.second, allow_graceful=False)

    def renew_second(self) -> None:
        """Start a second node again."""
        self.second = self.cluster.add_node(**self._options)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """Start the cluster once, without usage reports."""
    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Nodes()
    try:
        yield nodes
    finally:
        ray.shutdown()
        nodes.cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def engine(nodes: Nodes) -> Any:
    """The engine, connected."""
    from scoring.engines.ray import RayEngine

    return RayEngine(address=nodes.cluster.address)


def small_unit(folds: int = 9) -> Unit:
    """Three tasks, an odd number of folds, a dimension that needs padding."""
    return make_unit(samples=90, dim=37, types="rcr", folds=folds)


def long_unit() -> Unit:
    """A unit that keeps two cores busy for some seconds."""
    return make_unit(samples=2000, dim=512, types="rrrr", folds=64, recipe=Recipe(epochs=40))


def is_scorer(process: psutil.Process) -> bool:
    """Return whether a process is an actor that is not about to end."""
    try:
        return any("ray::Scorer" in word for word in process.cmdline())
    except psutil.Error:
        return False


def scorers() -> list[psutil.Process]:
    """Return the processes of this cluster's actors, whose nodes are our children; other clusters may run on this machine."""
    return [process for process in psutil.Process().children(recursive=True) if is_scorer(process)]


def test_ray_gives_the_local_bits(engine: Any) -> None:
    """Two nodes, one submission after the other: the same float64 values as one thread here."""
    for folds in (1, 9, 23):
        unit = small_unit(folds)
        done: list[int] = []
        assert np.array_equal(engine.score(unit, progress=done.append), LocalEngine(threads=1).score(unit))
        assert sum(done) == 3 * folds
    aligned = make_unit(samples=72, dim=64, types="rc", folds=4)
    assert np.array_equal(engine.score(aligned), LocalEngine(threads=1).score(aligned))


def test_the_units_of_a_submission_overlap(engine: Any) -> None:
    """Free cores go on with the next unit; scores come in the order of the units, each as soon as it is complete."""
    from scoring.engines.ray import OPEN_UNITS

    units = [
        make_unit(samples=300, dim=64, types="rc", folds=folds, seed=folds) for folds in (7, 1, 30, 2, 11)
    ]
    made: list[int] = []

    def coming() -> Iterator[Unit]:
        for number, unit in enumerate(units):
            made.append(number)
            yield unit

    done: list[int] = []
    for number, scores in enumerate(engine.score_all(coming(), progress=done.append)):
        assert np.array_equal(scores, LocalEngine(threads=1).score(units[number]))
        assert number or len(made) > 1  # the second was there before the first was complete
        assert len(made) <= number + OPEN_UNITS
    assert sum(done) == 2 * 51


@pytest.mark.parametrize("parts_per_core", [1, 3, 100])
def test_the_size_of_ranges_changes_no_bit(
    engine: Any, parts_per_core: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folds that are handed out in few ranges or one by one give the same bits."""
    monkeypatch.setattr(fold_scheduler, "PARTS_PER_CORE", parts_per_core)
    unit = small_unit()
    assert np.array_equal(engine.score(unit), LocalEngine(threads=1).score(unit))


class Listening(LocalEngine):
    """A local engine that remembers which rows it was given."""

    taken: np.ndarray

    def score(self, unit: Unit, **options: Any) -> np.ndarray:
        """Score, and remember the rows."""
        self.taken = unit.rows
        return super().score(unit, **options)


def test_large_rows_are_shared_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit an actor uses the read-only rows of the object store without a copy, with the same bits."""
    from scoring.engines import ray as ray_engine

    unit = small_unit()
    unit.rows.setflags(write=False)
    expected = LocalEngine(threads=1).score(small_unit())
    for limit, shared in ((0, True), (2**28, False)):
        scorer, listening = ray_engine.Scorer(cores=1), Listening(threads=1)
        scorer._engine = listening
        monkeypatch.setattr(ray_engine, "COPIED_BYTES", limit)
        assert np.array_equal(scorer.score(unit, Range(unit=0, first=0, last=9), "job"), expected)
        assert np.shares_memory(listening.taken, unit.rows) is shared


def test_actors_stay_warm(engine: Any) -> None:
    """The second submission uses the processes of the first."""
    ends = time.monotonic() + LIMIT_S
    while len(scorers()) != 2 and time.monotonic() < ends:  # a node may just be starting its own
        engine.score(small_unit())
    before = {process.pid for process in scorers()}
    engine.score(small_unit())
    assert len(before) == 2
    assert before == {process.pid for process in scorers()}


def test_a_killed_actor_is_replaced(engine: Any) -> None:
    """Its ranges are handed out again."""
    unit = long_unit()
    killed: list[int] = []

    def kill_one(probes: int) -> None:
        if not killed:
            victim = scorers()[0]
            killed.append(victim.pid)
            victim.kill()

    scores = engine.score(unit, progress=kill_one)
    assert killed
    assert np.array_equal(scores, LocalEngine(threads=2).score(unit))


def test_folds_of_a_lost_node_are_scored_by_others(engine: Any, nodes: Nodes) -> None:
    """If half of the cluster is lost, the other half finishes; a node that comes back is used again."""
    unit = long_unit()
    lost: list[bool] = []

    def lose(probes: int) -> None:
        if not lost:
            lost.append(True)
            nodes.lose_second()

    try:
        scores = engine.score(unit, progress=lose)
    finally:
        nodes.renew_second()
    assert lost
    assert np.array_equal(scores, LocalEngine(threads=2).score(unit))


def test_it_can_be_stopped(engine: Any) -> None:
    """A stop cancels the actors' work, so they are free for the next unit."""
    begun = threading.Event()
    with pytest.raises(Cancelled):
        engine.score(long_unit(), progress=lambda _: begun.set(), cancelled=begun.is_set)
    unit = small_unit()
    assert np.array_equal(engine.score(unit), LocalEngine(threads=1).score(unit))


def test_release_ends_the_actors(engine: Any) -> None:
    """Their cores become free for other jobs, and the next unit starts new actors."""
    engine.score(small_unit(2))
    engine.release()
    for process in scorers():
        process.wait(timeout=LIMIT_S)
    unit = small_unit(3)
    assert np.array_equal(engine.score(unit), LocalEngine(threads=1).score(unit))


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


def test_the_worker_scores_on_the_cluster(nodes: Nodes, tmp_path: Path) -> None:
    """The evaluation process joins the configured cluster; nothing else of the worker changes."""
    from tests.worker.harness.harness import Harness

    scoring = {"engine": "ray", "ray_address": nodes.cluster.address}
    with (
        Harness(tmp_path, clock=ManualClock(), changes={"scoring": scoring}) as harness,
        harness.worker() as worker,
    ):
        pk = harness.submit("A")
        worker.drive(lambda: worker.states().get(pk) == State.PUBLISHED)
        assert harness.status(pk) == "finished"
        with worker.store.read() as tx:
            made_by = {json.loads(cell.provenance)["versions"]["engine"] for cell in tx.all_cells()}
    assert made_by == {"ray"}


def test_the_worker_has_several_submissions_scored_on_the_cluster(nodes: Nodes, tmp_path: Path) -> None:
    """Several evaluations share the cluster and give the local engine's scores; only the worker's machine calls EvalAI."""
    from tests.worker.evaluation.test_at_once import Held
    from tests.worker.harness.callers import DOWNLOAD, CallersJournal
    from tests.worker.harness.harness import NEW, Harness, embeddings
    from worker.challenge.configuration import load
    from worker.challenge.files import read_phases
    from worker.evaluation import evaluate_child
    from worker.evaluation.evaluate_child import order_for

    files = [embeddings(NEW + number) for number in range(3)]
    scoring = {"engine": "ray", "ray_address": nodes.cluster.address, "at_once": 2}
    with Harness(tmp_path, clock=ManualClock(), changes={"scoring": scoring}) as harness:
        harness.evalai.world.journal = callers = CallersJournal()
        held = Held(harness, 2)
        worker = held.worker
        try:
            pks = [harness.submit(team, file) for team, file in zip("ABC", files, strict=True)]
            worker.drive(lambda: len(held.pks) == 2)
            held.let_go()
            worker.drive(lambda: all(worker.states().get(pk) == State.PUBLISHED for pk in pks))
            with worker.store.read() as tx:
                cells = tx.all_cells()
        finally:
            worker.stop()
        harness.configure({"scoring": {"engine": "local", "at_once": 1}})
        configuration = load(harness.path)
        setup, place = read_phases(configuration)["dev"], tmp_path / "submission.csv"
        expected = {}
        for file in files:
            place.write_bytes(file)
            order = order_for(
                setup, configuration, place, folder=tmp_path / "child", tasks=tuple(setup.tasks)
            )
            result = evaluate_child.main(order, lambda **_: None)
            card = Scorecard.from_json(result["scorecard"])
            expected |= {(card.content_hash, task.task): task.folds for task in card.tasks}
    assert {json.loads(cell.provenance)["versions"]["engine"] for cell in cells} == {"ray"}
    assert {(cell.content_hash, cell.task): cell.folds for cell in cells} == expected
    # The worker is this process. It has a child download each file. The nodes of the cluster are other children.
    others = [caller for caller in callers.made if caller.pid != os.getpid()]
    assert len(others) == len(pks)
    assert all(caller.parent == os.getpid() and DOWNLOAD in caller.command for caller in others)
    assert sum(callers.made.values()) == len(callers.requests())
