"""The local engine: the compiled kernel on this machine's cores, in a pool of threads.

Threads take one (pair of tasks, fold) after the other; the kernel releases the GIL. Every fold is computed from its own seeds alone, so its
score does not depend on the number of threads, on the unit's other folds or on the other tasks.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore
from scoring.metrics import best_score
from scoring.randomness import Split

Job = TypeVar("Job")
Result = TypeVar("Result")
_Job = tuple[NDArray[np.float32], NDArray[np.bool_], Split, NDArray[np.uint32]]
"""The arguments of :meth:`scoring.kernel.train.FoldTrainer.train`: targets and types of one or two tasks, a fold's split and its stream."""


def train_in_order(
    train: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    threads: int,
    finished: Callable[[Result], None],
    stop: NDArray[np.uint8],
) -> list[Result]:
    """Run all jobs, a few at a time, and return their results in order.

    ``jobs`` is consumed in the caller's thread, in order, so making a job may advance a random stream.

    Args:
        train: Runs one job.
        jobs: The jobs.
        threads: How many jobs run at once.
        finished: Called with each result, in order.
        stop: One byte that ``train`` polls. After an error, such as Ctrl-C, it is set to 1, and results no longer matter.
    """
    results: list[Result] = []
    waiting: deque[Future[Result]] = deque()

    def take_first() -> None:
        results.append(waiting.popleft().result())
        finished(results[-1])

    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="fold") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(train, job))
                if len(waiting) > 2 * threads:
                    take_first()
            while waiting:
                take_first()
        except BaseException:
            stop[0] = 1  # because the pool waits for running jobs
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


class LocalEngine(Engine):
    """Score units with the compiled kernel.

    Args:
        threads: How many folds are trained at once; None takes all cores that this process may use.
    """

    name = "local"

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = threads or available_cores()

    def score(self, unit: Unit, *, progress: Callable[[int], None] = ignore) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`."""
        from scoring.kernel.train import FoldTrainer

        trainer = FoldTrainer(unit.rows, unit.recipe)

        def train(job: _Job) -> list[float]:
            return [best_score(scores) for scores in trainer.train(*job).history.T]

        results = train_in_order(
            train,
            _jobs(unit),
            threads=self.threads,
            stop=trainer.stop,
            finished=lambda scores: progress(len(scores)),
        )
        shape = len(unit.split_seeds), len(unit.targets)  # the results are in the order of the folds
        return np.array([score for scores in results for score in scores]).reshape(shape).T


def available_cores() -> int:
    """Count the cores that this process may use, by its affinity and the CPU quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return cores if quota is None else max(1, min(cores, ceil(quota)))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Read the control group's CPU quota in cores (version 2, then version 1); None if there is no limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):
            limit, period = " ".join((root / name).read_text() for name in names).split()
            return None if limit in {"max", "-1"} else int(limit) / int(period)
    return None


def _jobs(unit: Unit) -> Iterator[_Job]:
    """Yield the jobs fold by fold, with the tasks in pairs."""
    from scoring.randomness.fold_draws import STATE_SIZE, start

    for split, training_seed in zip(unit.splits(), unit.training_seeds, strict=True):
        for task in range(0, len(unit.targets), 2):
            tasks = slice(task, task + 2)
            stream = np.empty(STATE_SIZE, dtype=np.uint32)
            start(stream, int(training_seed))
            # Copies are contiguous and writable, which is what the kernel was compiled for.
            yield unit.targets[tasks].copy(), unit.classification[tasks].copy(), split, stream
