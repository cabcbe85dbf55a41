"""``python -m tests.benchmarks.bench_scaling``: how the cost grows, and what a Ray cluster takes and gives.

Exponents come from core seconds of the kernel (what else runs on the machine hardly counts). Ray is compared in turns with the local engine
on as many threads as the cluster has cores: core seconds, and wall seconds, the fastest of each submission counting.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scoring.engine import Unit
from scoring.local import LocalEngine
from scoring.protocol import Recipe
from scoring.rows import aligned
from scoring.warm import warm
from tests.benchmarks.challenge_data import DIM, ROW_SETS, TASKS

ROUNDS = 3
CHALLENGE = (400, 200)  # submissions, folds of 2025
REDUCED = (2, 100)  # what is run here


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def make_unit(*, samples: int, dim: int, tasks: int, folds: int, seed: int = 0) -> Unit:
    """Make a unit of the challenge's kind."""
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


def submission(folds: int, seed: int) -> list[Unit]:
    """Make what one submission of 2025's evaluation phase is to an engine: nine tasks on five row sets."""
    tasks = Counter(row_set for _, _, row_set in TASKS)
    return [
        make_unit(samples=samples, dim=DIM, tasks=tasks[number], folds=folds, seed=seed)
        for number, samples in enumerate(ROW_SETS)
    ]


def exponent(name: str, values: Iterable[int], make: Callable[[int], Unit], expected: str) -> None:
    """Time one thread over a range and print the slope of the logarithms."""
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
    """Return the core seconds that this process and the cluster's actors have used."""
    import psutil

    actors = 0.0
    for process in psutil.process_iter(["cmdline", "cpu_times"]):
        if any("ray::Scorer" in word for word in process.info["cmdline"] or ()):
            actors += process.info["cpu_times"].user + process.info["cpu_times"].system
    return time.process_time() + actors


def timed(engine: Any, units: Iterable[Unit]) -> tuple[float, float]:
    """Return the wall seconds and the core seconds of one submission."""
    begun, used = time.perf_counter(), core_seconds()
    for unit in units:
        engine.score(unit)
    return time.perf_counter() - begun, core_seconds() - used


def cluster() -> None:
    """Compare a cluster of one and of two nodes, one core each, with the local engine on as many threads."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    from scoring.ray_engine import RayEngine

    submissions, folds = REDUCED
    units = [submission(folds, seed) for seed in range(submissions)]
    options: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 512 * 2**20}
    nodes = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **options})
    show("\n| nodes of one core | | local | Ray | efficiency |")
    show("|---|---|---|---|---|")
    try:
        for count in (1, 2):
            if count == 2:
                nodes.add_node(**options)
                nodes.wait_for_nodes()
            engines: list[Any] = [LocalEngine(threads=count), RayEngine(address=nodes.address)]
            for unit in submission(4, 0):  # the actors are warm afterwards
                if not np.array_equal(engines[0].score(unit), engines[1].score(unit)):
                    raise RuntimeError("the engines disagree")
            best = np.full((2, submissions, 2), math.inf)  # engine, submission, wall and core seconds
            for _ in range(ROUNDS):
                for number, each in enumerate(units):
                    for which, engine in enumerate(engines):
                        best[which, number] = np.minimum(best[which, number], timed(engine, each))
            (local_s, local_core), (ray_s, ray_core) = best.sum(axis=1)
            show(f"| {count} | wall s | {local_s:.2f} | {ray_s:.2f} | {local_s / ray_s:.2f} |")
            show(f"| {count} | core s | {local_core:.2f} | {ray_core:.2f} | {local_core / ray_core:.2f} |")
        share = (submissions * folds) / math.prod(CHALLENGE)
        show(
            f"\n{submissions} submissions x {folds} folds are {share:.3%} of 2025's rescore, which would take"
            f" {local_core / share / 3600:.1f} core hours locally and {ray_core / share / 3600:.1f} with Ray, if cost stays proportional."
        )
    finally:
        ray.shutdown()
        nodes.shutdown()


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["exponents", "cluster"])
    only = parser.parse_args().only
    warm()
    if only in (None, "exponents"):
        exponents()
    if only in (None, "cluster"):
        cluster()


if __name__ == "__main__":
    main()
