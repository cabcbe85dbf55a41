"""How well the kernel uses more cores, compared with what the caches allow.

``python -m tests.benchmarks.bench_cores`` trains the largest row set of 2025 (4,691 x 1,024, two tasks) on 1, 2, 4, 8, … threads, up to the
number of cores, and reads the same rows in random order with the same threads. Thread counts take turns, and each is compared with the
single thread of the same turn. The efficiency gives the time of the probes of a whole evaluation job.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import psutil

from scoring.engines import LocalEngine, Unit
from scoring.engines.local import available_cores
from scoring.warm import warm
from tests.benchmarks import limits
from tests.benchmarks.bench_scaling import make_unit
from tests.benchmarks.challenge_data import DIM, ROW_SETS, TASKS

FOLDS, TASKS_OF_UNIT = 16, 2  # folds per thread, so that every thread has the same work
CHALLENGE_FOLDS = 200
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warm()
    samples = max(ROW_SETS)
    counts = thread_counts(available_cores())
    physical = psutil.cpu_count(logical=False) or 0
    show(
        f"{available_cores()} cores that this process may use, {physical} physical; {shared_cache()};"
        f" {options.rounds} rounds; load average at the start {os.getloadavg()[0]:.1f}\n"
    )
    units = {count: unit(samples, count * FOLDS) for count in counts}
    rates: dict[int, list[float]] = {count: [] for count in counts}
    reads: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(options.rounds):
        for count in counts:
            rates[count].append(folds_per_second(units[count], count))
            reads[count].append(limits.read_rate(count, samples, DIM, shuffled=True))
    show(
        "| threads | folds per second | efficiency of the kernel | of reading rows in random order | probes of an evaluation job |"
    )
    show("|---|---|---|---|---|")
    for count in counts:
        rate = statistics.median(rates[count])
        show(
            f"| {count} | {rate:.0f} | {efficiency(rates, count):.2f} | {efficiency(reads, count):.2f}"
            f" | {evaluation_folds(samples) / rate:.2f} s |"
        )


def thread_counts(cores: int) -> list[int]:
    """Return 1, 2, 4, 8, … and the number of cores."""
    return sorted({2**power for power in range(cores.bit_length()) if 2**power <= cores} | {cores})


def unit(samples: int, folds: int) -> Unit:
    """Make two tasks on the largest row set."""
    return make_unit(samples=samples, dim=DIM, tasks=TASKS_OF_UNIT, folds=folds)


def folds_per_second(work: Unit, threads: int) -> float:
    """Train the folds once."""
    begun = time.perf_counter()
    LocalEngine(threads=threads).score(work)
    return len(work.split_seeds) / (time.perf_counter() - begun)


def efficiency(rates: dict[int, list[float]], threads: int) -> float:
    """Compare a rate with that of one thread, turn by turn; 1 means that every thread is as fast as a single one."""
    return statistics.median(
        many / (threads * one) for many, one in zip(rates[threads], rates[1], strict=True)
    )


def evaluation_folds(samples: int) -> float:
    """Return how many folds of the unit an evaluation job of 2025 is worth: nine tasks on five row sets, 200 folds."""
    trained = sum(ROW_SETS[row_set] for _, _, row_set in TASKS)
    return CHALLENGE_FOLDS * trained / (TASKS_OF_UNIT * samples)


def shared_cache() -> str:
    """Describe the last-level cache and the cores that share it, from Linux."""
    levels = sorted(CACHES.glob("index*"))
    if not levels:
        return "caches unknown"
    told = {
        name: (levels[-1] / name).read_text(encoding="ascii").strip()
        for name in ("level", "size", "shared_cpu_list")
    }
    return f"L{told['level']} of {told['size']} for the cores {told['shared_cpu_list']}"


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
