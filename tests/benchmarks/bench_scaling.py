"""``python -m tests.benchmarks.bench_scaling``: how the cost grows, in the kernel's core seconds, which other processes hardly change."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable

import numpy as np

from scoring.engines import LocalEngine, Unit
from scoring.kernel import aligned
from scoring.protocol import Recipe
from scoring.warm import warm

ROUNDS = 3


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


def main() -> None:
    """Print one row per quantity."""
    warm()
    show("| grows | expected exponent | measured | core seconds |")
    show("|---|---|---|---|")
    size = {"samples": 2000, "dim": 1024, "tasks": 2, "folds": 2}
    exponent("dimension N", (256, 512, 1024, 2048, 4096), lambda n: make_unit(**{**size, "dim": n}), "1")
    samples = (1000, 4000, 16000, 64000, 100000)
    exponent("samples", samples, lambda n: make_unit(**{**size, "samples": n, "folds": 1}), "1")
    exponent("folds", (2, 4, 8, 16), lambda n: make_unit(**{**size, "folds": n}), "1")
    exponent("tasks", (2, 4, 8, 16), lambda n: make_unit(**{**size, "tasks": n}), "1")


if __name__ == "__main__":
    main()
