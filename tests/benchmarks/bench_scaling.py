"""``python -m tests.benchmarks.bench_scaling``: how the cost grows, and how fast a Ray cluster is.

Exponents come from the kernel's core seconds, which other processes hardly change. Ray takes turns with three others: the ideal
(one thread's time divided by the number of cores), as many threads as the cluster has cores, which share one copy of the rows in their
cache, and as many plain processes, each with its own copy from the start, which is the best that nodes without shared memory could do. Both
core and wall seconds are printed, for the fastest run of each submission.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import psutil

from scoring.engines import LocalEngine, Unit
from scoring.engines.fold_scheduler import FoldScheduler
from scoring.kernel import aligned
from scoring.protocol import Recipe
from scoring.warm import warm
from tests.benchmarks.challenge_data import DIM, ROW_SETS, TASKS

ROUNDS = 3
CHALLENGE = (400, 200)  # submissions, folds of 2025
REDUCED = (1, 200)  # submissions and folds here; fewer submissions, but with all folds


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def make_unit(*, samples: int, dim: int, tasks: int, folds: int, seed: int = 0) -> Unit:
    """Make a unit like those of the challenge."""
    generator = np.random.default_rng(seed)
    rows = aligned((samples, dim))
    rows[:] = generator.standard_normal((samples, dim), dtype=np.float32)
    seeds = generator.integers(0, 2**32, size=(2, folds), dtype=np.uint32)
    return Unit(
        rows=rows,
        targets=generator.random((tasks, samples), dtype=np.float32),
        classification=np.zeros(tasks, dtype=bool),
        split_seeds=seeds[0],
        training_seeds=seeds[1],
        recipe=Recipe(),
    )


def submission(folds: int, seed: int, dim: int = DIM) -> list[Unit]:
    """Make the units of one submission to 2025's evaluation phase: nine tasks on five row sets."""
    tasks = Counter(row_set for _, _, row_set in TASKS)
    return [
        make_unit(samples=samples, dim=dim, tasks=tasks[number], folds=folds, seed=seed)
        for number, samples in enumerate(ROW_SETS)
    ]


def exponent(name: str, values: Iterable[int], make: Callable[[int], Unit], expected: str) -> None:
    """Measure one thread over a range and print the slope of the logarithms."""
    engine = LocalEngine(threads=1)
    points = []
    for value in values:
        unit = make(value)
        best = math.inf
        for _ in range(ROUNDS):
            begun = time.process_time()
            engine.score(unit)
            best = min(best, time.process_time() - begun)
        points.append((value, best))
    slope = np.polyfit(np.log([x for x, _ in points]), np.log([y for _, y in points]), 1)[0]
    listed = ", ".join(f"{x:,}: {y:.3f} s" for x, y in points)
    show(f"| {name} | {expected} | {slope:.2f} | {listed} |")


def exponents() -> None:
    """Print one row per quantity."""
    show("| grows | expected exponent | measured | core seconds |")
    show("|---|---|---|---|")
    size = {"samples": 2000, "dim": 1024, "tasks": 2, "folds": 2}
    exponent("dimension N", (256, 512, 1024, 2048, 4096), lambda n: make_unit(**{**size, "dim": n}), "1")
    samples = (1000, 4000, 16000, 64000, 100000)
    exponent("samples", samples, lambda n: make_unit(**{**size, "samples": n, "folds": 1}), "1")
    exponent("folds", (2, 4, 8, 16), lambda n: make_unit(**{**size, "folds": n}), "1")
    exponent("tasks", (2, 4, 8, 16), lambda n: make_unit(**{**size, "tasks": n}), "1")


def core_seconds() -> float:
    """Return the core seconds that this process, our plain processes and the cluster's actors have used."""
    ours = ("ray::Scorer", "multiprocessing.spawn")
    used = 0.0
    for process in psutil.process_iter(["cmdline", "cpu_times"]):
        if any(name in word for word in process.info["cmdline"] or () for name in ours):
            used += process.info["cpu_times"].user + process.info["cpu_times"].system
    return time.process_time() + used


def timed(engine: Any, units: Iterable[Unit]) -> tuple[float, float]:
    """Return the wall seconds and the core seconds of one submission."""
    begun, used = time.perf_counter(), core_seconds()
    for _ in engine.score_all(units):
        pass
    return time.perf_counter() - begun, core_seconds() - used


class Processes:
    """Plain processes that score ranges of folds like the Ray engine's, each on its own copy of the rows.

    Args:
        count: Number of processes.
        submissions: Number of submissions that they have.
        folds: Number of folds of each.
        dim: Dimension of the embeddings.
    """

    def __init__(self, count: int, *, submissions: int, folds: int, dim: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._dealt = context.Value("i", 0)
        self._pipes = []
        self._processes = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            arguments = (theirs, self._dealt, count, submissions, folds, dim)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()

    def score(self, unit: Unit) -> np.ndarray:
        """Score one of their units."""
        [scores] = self.score_all([unit])
        return scores

    def score_all(self, units: Iterable[Unit]) -> list[np.ndarray]:
        """Score some of their units."""
        units = list(units)
        self._dealt.value = 0
        for pipe in self._pipes:
            pipe.send([_key(unit) for unit in units])
        scores = [np.full((len(unit.targets), len(unit.split_seeds)), np.nan) for unit in units]
        for pipe in self._pipes:
            for part, found in pipe.recv():
                scores[part.unit][:, part.first : part.last] = found
        return scores

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.terminate()
            process.join()


def _key(unit: Unit) -> bytes:
    return unit.split_seeds.tobytes()


def _work(pipe: Any, dealt: Any, count: int, submissions: int, folds: int, dim: int) -> None:
    known = {_key(unit): unit for seed in range(submissions) for unit in submission(folds, seed, dim)}
    engine = LocalEngine(threads=1)
    warm()
    pipe.send(True)
    while True:
        units = [known[key] for key in pipe.recv()]
        scheduler = FoldScheduler()
        for unit in units:
            scheduler.add(folds=folds, cost=unit.rows.size * len(unit.targets))
        ranges = list(iter(lambda scheduler=scheduler: scheduler.next(count), None))
        parts = []
        while True:
            with dealt.get_lock():
                place = dealt.value
                dealt.value += 1
            if place >= len(ranges):
                break
            part = ranges[place]
            unit, chosen = units[part.unit], slice(part.first, part.last)
            seeds = {"split_seeds": unit.split_seeds[chosen], "training_seeds": unit.training_seeds[chosen]}
            parts.append((part, engine.score(replace(unit, **seeds))))
        pipe.send(parts)


def cluster(layouts: Iterable[tuple[int, int]], dim: int) -> None:
    """Compare clusters, each given as nodes and cores per node, with the local engine on as many threads."""
    submissions, folds = REDUCED
    units = [submission(folds, seed, dim) for seed in range(submissions)]
    show("\n| nodes x cores | | ideal | threads | processes | Ray | of ideal | of threads | of processes |")
    show("|---|---|---|---|---|---|---|---|---|")
    for nodes, cores in layouts:
        best = compare(nodes, cores, units, folds, dim)
        for column, what in enumerate(("wall", "core")):
            seconds = best[:, :, column].sum(axis=1)
            seconds[0] /= nodes * cores if what == "wall" else 1
            cells = [*(f"{each:.2f}" for each in (*seconds, *(seconds[:-1] / seconds[-1])))]
            show(f"| {nodes} x {cores} | {what} s | {' | '.join(cells)} |")
    _, local_core, _, ray_core = seconds
    share = (submissions * folds) / math.prod(CHALLENGE)
    show(
        f"\n{submissions} submission of {folds} folds, dimension {dim}, is {share:.3%} of 2025's rescore, which would take"
        f" {local_core / share / 3600:.1f} core hours locally and {ray_core / share / 3600:.1f} with Ray, if cost stays proportional."
    )


def compare(nodes: int, cores: int, units: list[list[Unit]], folds: int, dim: int) -> np.ndarray:
    """Score the submissions with one thread, threads, processes and Ray by turns; return the fastest of each, in wall and core seconds."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    from scoring.engines.ray import RayEngine

    options: dict[str, Any] = {"num_cpus": cores, "object_store_memory": 512 * 2**20}
    started = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **options})
    try:
        for _ in range(nodes - 1):
            started.add_node(**options)
        started.wait_for_nodes()
        plain = Processes(nodes * cores, submissions=len(units), folds=folds, dim=dim)
        engines: list[Any] = [
            *(LocalEngine(threads=1), LocalEngine(threads=nodes * cores)),
            *(plain, RayEngine(address=started.address)),
        ]
        for unit in units[0]:  # warms the actors up
            expected, *others = (engine.score(unit) for engine in engines)
            if not all(np.array_equal(expected, scores) for scores in others):
                raise RuntimeError("the engines disagree")
        best = np.full((len(engines), len(units), 2), math.inf)  # by engine; wall and core seconds
        for _ in range(ROUNDS):
            for number, each in enumerate(units):
                for which, engine in enumerate(engines):
                    best[which, number] = np.minimum(best[which, number], timed(engine, each))
        plain.close()
        return best
    finally:
        ray.shutdown()
        started.shutdown()


def layout(text: str) -> tuple[int, int]:
    """Read NODESxCORES."""
    nodes, _, cores = text.partition("x")
    return int(nodes), int(cores)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["exponents", "cluster"])
    parser.add_argument(
        "--dim",
        type=int,
        default=DIM,
        help="of the cluster's submissions; at 256 each node's copy of the rows fits into a cache that both share",
    )
    parser.add_argument(
        "--layouts",
        type=layout,
        nargs="+",
        default=[(1, 1), (2, 1), (1, 2)],
        metavar="NODESxCORES",
        help="clusters to measure, all on this machine (default: 1x1 2x1 1x2)",
    )
    arguments = parser.parse_args()
    only = arguments.only
    warm()
    if only in (None, "exponents"):
        exponents()
    if only in (None, "cluster"):
        cluster(arguments.layouts, arguments.dim)


if __name__ == "__main__":
    main()
