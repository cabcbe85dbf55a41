"""The ray engine: the compiled kernel on a Ray cluster.

One actor per node stays warm between submissions. Actors are detached, and their namespace is named after a digest of our sources, so an
upgrade starts new ones. A unit is put into the object store once. On each node, one thread per core trains on one copy of the rows, like
the local engine's threads: a copy for each core would not fit into the cache that the cores share. A free core gets a range of folds, and
goes on with the submission's next unit while others finish the previous one, see :mod:`scoring.engines.fold_scheduler`. If several
submissions are scored at once, a core first trains for the one that came first, see :mod:`scoring.engines.turns`. The kernel scores every
fold from its own seeds alone, so on equal processors the scores equal the local engine's to the bit, no matter how, or how often, the folds
are handed out.

Folds that are lost with a node, an actor or an object are handed out again, and every second the engine starts actors on nodes that have
none. Only the worker's machine and the cluster's nodes see labels. ray is an optional dependency; nothing imports this module unless the
engine is chosen.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import socket
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from scoring.engines.base import Engine, Unit, ignore, never, require_linear
from scoring.engines.fold_scheduler import FoldScheduler, Range
from scoring.engines.local import LocalEngine
from scoring.engines.turns import Turns
from scoring.errors import Cancelled, InfrastructureError, OrganizerError
from scoring.kernel import aligned

LOOK_EVERY_S = 0.1  # how often the caller's thread reports progress and asks whether to stop
ACTORS_EVERY_S = 1.0  # how often nodes without an actor get one
START_WITHIN_S = 120.0  # if no actor has worked for this long, the cluster counts as full or broken
COPIED_BYTES = 2**28  # larger rows are not copied out of the object store
OPEN_UNITS = 3  # units that are in the cluster at once: the previous, the current and the next one
REACHED_WITHIN_S = 5.0  # for the head's port; ray itself would try for half a minute
QUEUED = 8  # an actor puts the calls of this many submissions in order; calls of further submissions wait outside it
TRIES = 5  # how often a range may be lost before the cluster counts as broken

LOST = (
    exceptions.RayActorError,
    exceptions.ObjectLostError,
    exceptions.OutOfMemoryError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.LocalRayletDiedError,
)
"""Errors of a call whose process or node died; the call itself may be tried again."""

# Ray's type hints lack concurrency groups of classes, and the dictionaries of ray.nodes.
_remote: Any = ray.remote
_known_nodes: Any = ray.nodes


class Scorer:
    """The actor: the local engine on one node, with one call per core.

    Args:
        cores: Number of the node's cores.
    """

    def __init__(self, cores: int) -> None:
        self._engine = LocalEngine(threads=1)
        self._turns = Turns(cores)
        self._stopped: deque[str] = deque(maxlen=1000)
        self._keeping = threading.Lock()
        # Job, unit's number and rows of the last call.
        self._kept: tuple[str, int, NDArray[np.float32]] | None = None

    @ray.method(concurrency_group="control")
    def version(self) -> str:
        """Return the digest of this node's sources; the answer also shows that this actor is up."""
        return code_digest()

    @ray.method(concurrency_group="control")
    def stop(self, job: str) -> None:
        """Cancel a job's running calls, and those that are still to come."""
        self._stopped.append(job)

    @ray.method(concurrency_group="cores")
    def score(self, unit: Unit, part: Range, job: str) -> NDArray[np.float64]:
        """Score a range of a unit's folds."""
        first, last = part.first, part.last
        with self._turns.take(job):
            return self._engine.score(
                replace(
                    unit,
                    rows=self._rows(unit, part.unit, job),
                    split_seeds=unit.split_seeds[first:last],
                    training_seeds=unit.training_seeds[first:last],
                ),
                cancelled=lambda: job in self._stopped,
            )

    def _rows(self, unit: Unit, number: int, job: str) -> NDArray[np.float32]:
        """Return rows for the kernel: a copy that is kept for the next range, or, if a copy would be too large, the shared rows.

        The kernel jumps from row to row, and the object store is on small memory pages; a copy in this process is on large ones.
        """
        with self._keeping:
            if unit.rows.nbytes > COPIED_BYTES:
                self._kept = None
                return _writable(unit.rows)
            if self._kept is None or self._kept[:2] != (job, number):
                self._kept = None  # frees the old copy before the new one is made
                rows = aligned((unit.rows.shape[0], unit.rows.shape[1]))
                rows[:] = unit.rows
                self._kept = job, number, rows
            return self._kept[2]


@cache
def code_digest() -> str:
    """Return a digest of the sources of ``scoring``, which two machines must share to give the same bits."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _writable(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """View shared rows as an ordinary array.

    The object store's arrays are read-only, which numba treats as another type. The kernel never writes to rows, so this view saves a copy
    and a second compilation. The caller must keep ``rows`` alive.
    """
    pointer = ctypes.cast(rows.ctypes.data, ctypes.POINTER(ctypes.c_float))
    view: NDArray[np.float32] = np.ctypeslib.as_array(pointer, shape=rows.shape)
    return view


class RayEngine(Engine):
    """Score units on a Ray cluster.

    Args:
        address: ``auto`` for the cluster that this machine is part of, or ``host:port`` of its head.

    Raises:
        InfrastructureError: If the cluster cannot be reached.
    """

    name = "ray"

    def __init__(self, *, address: str = "auto") -> None:
        if not ray.is_initialized():
            try:
                _knock(address)
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, RuntimeError, ValueError) as error:
                raise InfrastructureError(
                    f"The Ray cluster at {address!r} cannot be reached ({type(error).__name__}).",
                    cure="Start it, or let this machine join it with `ray start --address=HEAD:6379`; see deploy/ray.",
                    code="engine.ray_unreachable",
                ) from error
        self._namespace = f"neuco-worker-{code_digest()}"

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`.

        Raises:
            InfrastructureError: If the cluster has no free core, or loses the same folds again and again.
        """
        [scores] = self.score_all([unit], progress=progress, cancelled=cancelled)
        return scores

    def score_all(
        self,
        units: Iterable[Unit],
        *,
        progress: Callable[[int], None] = ignore,
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[NDArray[np.float64]]:
        """See :meth:`scoring.engines.base.Engine.score_all`.

        Raises:
            InfrastructureError: As :meth:`score`.
        """
        yield from _ClusterJob(iter(units), self._namespace).run(progress, cancelled)

    def release(self) -> None:
        """End the actors of this version, so that their cores are free for other jobs; the next unit starts new ones."""
        for actor in ray.util.list_named_actors(all_namespaces=True):
            if actor["namespace"] == self._namespace:
                ray.kill(ray.get_actor(actor["name"], namespace=self._namespace))


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A node's actor; it can work on as many ranges at once as the node has cores."""

    actor: Any
    cores: int


@dataclass(kw_only=True)
class _Open:
    """A unit in the cluster whose folds are not all scored yet."""

    shared: Any  # the unit's reference in the object store
    scores: NDArray[np.float64]
    left: int


@dataclass
class _ClusterJob:
    """One submission on its way through the cluster."""

    units: Iterator[Unit]
    namespace: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    scheduler: FoldScheduler = field(default_factory=FoldScheduler)
    open: dict[int, _Open] = field(default_factory=dict)  # by the unit's number
    ready: dict[str, _Node] = field(default_factory=dict)  # by the actor's name
    starting: dict[Any, tuple[str, _Node]] = field(default_factory=dict)  # by reference
    at_work: dict[Any, tuple[str, _Node, Range]] = field(default_factory=dict)
    lost: Counter[Range] = field(default_factory=Counter)

    def run(
        self, progress: Callable[[int], None], cancelled: Callable[[], bool]
    ) -> Iterator[NDArray[np.float64]]:
        """Hand out the folds, gather their scores, and yield the scores of each unit in order."""
        started_at, worked_at = -ACTORS_EVERY_S, time.monotonic()
        try:
            while True:
                self._take(1)
                if not self.open:
                    return
                now = time.monotonic()
                if now - started_at >= ACTORS_EVERY_S:
                    self._start_actors()
                    started_at = now
                self._hand_out()
                worked_at = now if self.at_work else worked_at
                if now - worked_at > START_WITHIN_S:
                    raise InfrastructureError(
                        "No node of the Ray cluster has all its cores free.",
                        cure="Check `ray status` for other jobs, actors of another version, and missing nodes.",
                        code="engine.ray_full",
                    )
                self._take(2)  # prepares the next unit while the cores are busy
                for part, scores in self._gather():
                    unit = self.open[part.unit]
                    unit.scores[:, part.first : part.last] = scores
                    unit.left -= part.folds
                    progress(len(scores) * part.folds)
                while self.open and not self.open[oldest := min(self.open)].left:
                    yield self.open.pop(oldest).scores
                if self.open and cancelled():
                    raise Cancelled()
        finally:
            self._stop_work()

    def _take(self, untouched: int) -> None:
        """Put units into the cluster until ``untouched`` of them still have folds to hand out, or no units are left."""
        while self.scheduler.untouched < untouched and len(self.open) < OPEN_UNITS:
            unit = next(self.units, None)
            if unit is None:
                return
            require_linear(unit)
            tasks, folds = len(unit.targets), len(unit.split_seeds)
            number = self.scheduler.add(folds=folds, cost=unit.rows.size * tasks)
            self.open[number] = _Open(
                shared=ray.put(unit), scores=np.full((tasks, folds), np.nan), left=folds
            )

    def _start_actors(self) -> None:
        """Start an actor on each node that has none; actors of earlier submissions are used again."""
        known = {*self.ready, *(name for name, _ in self.starting.values())}
        for node, cores in _nodes().items():
            name = f"scorer-{node}"
            if name in known:
                continue
            actor = (
                _remote(concurrency_groups={"control": 1, "cores": cores * QUEUED})(Scorer)
                .options(
                    name=name,
                    namespace=self.namespace,
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=cores,
                    max_restarts=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                )
                .remote(cores)
            )
            self.starting[actor.version.remote()] = (name, _Node(actor=actor, cores=cores))

    def _hand_out(self) -> None:
        """Hand a range of folds to every core that is free."""
        busy = Counter(name for name, _, _ in self.at_work.values())
        total = sum(
            node.cores for node in (*self.ready.values(), *(node for _, node in self.starting.values()))
        )
        for name, node in self.ready.items():
            for _ in range(node.cores - busy[name]):
                part = self.scheduler.next(total)
                if part is None:
                    return
                call = node.actor.score.remote(self.open[part.unit].shared, part, self.token)
                self.at_work[call] = (name, node, part)

    def _gather(self) -> list[tuple[Range, NDArray[np.float64]]]:
        """Wait a moment, return the finished ranges with their scores, and note which actors have started or died."""
        references = [*self.at_work, *self.starting]
        if not references:
            threading.Event().wait(LOOK_EVERY_S)
            return []
        done, _ = ray.wait(references, num_returns=1, timeout=LOOK_EVERY_S)
        more, _ = ray.wait(references, num_returns=len(references), timeout=0)
        results = []
        for reference in {*done, *more}:
            if reference in self.starting:
                self._take_in(reference)
                continue
            name, node, part = self.at_work.pop(reference)
            try:
                results.append((part, ray.get(reference)))
            except LOST as error:
                if self.ready.get(name) is node:  # it may have been replaced already
                    del self.ready[name]
                self._requeue(part, error)
        return results

    def _take_in(self, reference: Any) -> None:
        name, node = self.starting.pop(reference)
        try:
            digest = ray.get(reference)
        except LOST:
            return  # _start_actors tries again within a second
        if digest != code_digest():
            raise OrganizerError(
                "A node of the Ray cluster runs a different version of neuco-worker.",
                cure="Install the same version on all nodes.",
                code="engine.ray_version",
            )
        self.ready[name] = node

    def _requeue(self, part: Range, error: Exception) -> None:
        self.lost[part] += 1
        if self.lost[part] >= TRIES:
            raise InfrastructureError(
                f"The Ray cluster lost the same folds {TRIES} times ({type(error).__name__}).",
                cure="Check the memory of the nodes, and `ray status`.",
                code="engine.ray_lost",
            ) from error
        self.scheduler.requeue(part)

    def _stop_work(self) -> None:
        """Tell the actors that are still working to stop."""
        for name in {name for name, _, _ in self.at_work.values()} & self.ready.keys():
            self.ready[name].actor.stop.remote(self.token)


def _knock(address: str) -> None:
    """Connect to the head's port, if the address has one.

    Raises:
        OSError: If nothing answers.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in host:
        socket.create_connection((host, int(port)), timeout=REACHED_WITHIN_S).close()


def _nodes() -> dict[str, int]:
    """Return the number of cores of each living node that has any."""
    found: list[dict[str, Any]] = _known_nodes()
    cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in found if node["Alive"]}
    return {node: count for node, count in cores.items() if count}
