"""Measure the ridge probe against the linear probe, and against scikit-learn's Ridge at a single penalty.

Run with ``python -m tests.benchmarks.bench_ridge`` on an idle machine. The three take turns; figures are processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from scoring.metrics import r2
from scoring.probes.probe import ProbeInput, make_probe, splits
from scoring.scorecard import machine
from scoring.tasks import TaskType
from tests.benchmarks.bench_scoring import say


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {
        "rows": 5000,
        "dims": 768,
        "tasks": 4,
        "folds": 20,
        "rounds": 3,
        "threads": 1,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((options.rows, options.dims), dtype=np.float32)
    labels = rows @ generator.standard_normal((options.dims, options.tasks), dtype=np.float32)
    labels = (labels - labels.min(axis=0)) / np.ptp(labels, axis=0)
    tasks = [
        ProbeInput(name=str(number), kind=TaskType.REGRESSION, rows=rows, targets=column)
        for number, column in enumerate(np.ascontiguousarray(labels.T))
    ]

    def ridge() -> None:
        make_probe("ridge", {}, threads=options.threads).train(*tasks, folds=options.folds)

    def linear() -> None:
        probe = make_probe("linear", {"epochs": 20}, threads=options.threads)
        for task in tasks:
            probe.train(task, folds=options.folds)

    def loop() -> None:
        for task in tasks:
            for fold in splits(task, options.folds, 42):
                fitted = Ridge(alpha=1.0).fit(rows[fold.train], task.targets[fold.train])
                r2(fitted.predict(rows[fold.test]), task.targets[fold.test])

    ways: dict[str, Callable[[], None]] = {"ridge": ridge, "linear": linear, "scikit-learn's loop": loop}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    say(f"{machine()}, load {os.getloadavg()[0]:.1f}, {vars(options)}")
    make_probe("linear", {"epochs": 1}).train(tasks[0], folds=1)  # compiles or loads the kernel
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(options.rounds):
            for name, way in ways.items():
                begun, used = time.perf_counter(), time.process_time()
                way()
                spent[name].append(time.process_time() - used)
                say(f"{name}: {spent[name][-1]:.2f} s of processor time, {time.perf_counter() - begun:.2f} s")
    for name, seconds in spent.items():
        say(f"{name}: median {statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})")


if __name__ == "__main__":
    main()
