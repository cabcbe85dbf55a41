"""Time the bootstrap at full size: 2,000 replicates, 100 teams x 20 tasks x 200 folds.

Run with ``python tests/benchmarks/bench_ranking.py``; prints seconds and peak memory for tasks on 1, 5 and 20 row sets. The promise is less
than 5 s on 2 cores.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from leaderboard.uncertainty import FoldTable, bootstrap


def main() -> None:
    """Measure and print."""
    random = np.random.default_rng(0)
    folds = tuple(
        0.5 + 0.2 * random.random((100, 1)) + 0.03 * random.standard_normal((100, 200)) for _ in range(20)
    )
    everyone = np.ones(100, bool)
    for row_sets in (1, 5, 20):
        table = FoldTable(row_sets=tuple(f"rows {i % row_sets}" for i in range(20)), folds=folds, seed="dev")
        start = time.perf_counter()
        bootstrap(table, epsilon=0.02, weighs=everyone, numbered=everyone)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        sys.stdout.write(f"{row_sets:2d} row sets: {seconds:.2f} s, peak {peak} MiB\n")


if __name__ == "__main__":
    main()
