"""The local engine: the compiled kernel on this machine's cores.

Plain threads take one (pair of tasks, fold) after the other; the kernel holds no GIL. Every fold is computed alone from its own seeds, so
its score does not depend on the number of threads, on which folds a unit holds, or on the other tasks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.engine import Engine, Unit, ignore, never
from scoring.errors import Cancelled, OrganizerError
from scoring.protocol import Recipe
from scoring.rows import padded
from scoring.splits import Splitter, held_out

LOOK_EVERY_S = 0.1  # how often the caller's thread reports progress and asks whether to stop


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldJob:
    """One call of the kernel.

    Attributes:
        tasks: Positions of the one or two tasks it trains.
        fold: Position of the fold in the result.
        split: Permutation of the rows, test part first.
        stream: torch's generator at the start of the fold, consumed by the call.
    """

    tasks: tuple[int, ...]
    fold: int
    split: NDArray[np.int32]
    stream: NDArray[np.uint32]


class LocalEngine(Engine):
    """Score units with the compiled kernel.

    Args:
        threads: How many folds are trained at once; None takes all cores that this process may use.
    """

    name = "local"

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = threads or available_cores()

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """See :meth:`scoring.engine.Engine.score`."""
        return train_folds(
            unit.rows,
            unit.targets,
            unit.classification,
            unit.recipe,
            _challenge_jobs(unit),
            folds=len(unit.split_seeds),
            threads=self.threads,
            progress=progress,
            cancelled=cancelled,
        )


def train_folds(
    rows: NDArray[np.float32],
    targets: NDArray[np.float32],
    classification: NDArray[np.bool_],
    recipe: Recipe,
    jobs: Iterable[FoldJob],
    *,
    folds: int,
    threads: int,
    progress: Callable[[int], None] = ignore,
    cancelled: Callable[[], bool] = never,
) -> NDArray[np.float64]:
    """Run the kernel over jobs, wherever their randomness comes from.

    Args:
        rows: float32, n x N.
        targets: float32, T x n.
        classification: T booleans.
        recipe: Hyper-parameters.
        jobs: Made one at a time, in order, as threads become free.
        folds: Number K of folds.
        threads: How many threads work.
        progress: See :class:`scoring.engine.Engine`.
        cancelled: See :class:`scoring.engine.Engine`.

    Returns:
        T x K best held-out scores, NaN where a fold failed.

    Raises:
        Cancelled: If ``cancelled`` said so.
    """
    if recipe.probe != "linear":
        raise OrganizerError(
            f"This engine trains linear probes, not {recipe.probe!r}.",
            cure="Set scoring.probe to linear.",
            code="engine.probe",
        )
    from scoring.kernel import train_fold
    from scoring.lanes import LANES

    tested = held_out(len(rows), recipe.test_size)
    flat, width = padded(rows, LANES)
    scores = np.full((len(targets), folds), np.nan)
    stop = np.zeros(1, dtype=np.uint8)

    def train(job: FoldJob) -> int:
        chosen = list(job.tasks)
        best = np.empty(len(chosen), dtype=np.float64)
        finished = train_fold(
            flat,
            width,
            rows.shape[1],
            targets[chosen],
            classification[chosen],
            job.split,
            tested,
            job.stream,
            recipe.epochs,
            recipe.batch_size,
            recipe.learning_rate,
            stop,
            best,
        )
        if finished:
            scores[chosen, job.fold] = best
        return len(chosen) if finished else 0

    _Crew(train, iter(jobs), stop).work(threads, progress, cancelled)
    return scores


def pairs(tasks: int) -> list[tuple[int, ...]]:
    """Put tasks on one row set together two by two."""
    return [tuple(range(task, min(task + 2, tasks))) for task in range(0, tasks, 2)]


def available_cores() -> int:
    """Count the cores this process may use: its affinity, and the CPU quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return cores if quota is None else max(1, min(cores, ceil(quota)))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Read how many cores' time the control group grants (version 2, then version 1); None if it does not limit."""
    try:
        limit, period = (root / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit_us = int((root / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((root / "cpu" / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return limit_us / period_us if limit_us > 0 else None


def _challenge_jobs(unit: Unit) -> Iterator[FoldJob]:
    from scoring.torch_stream import STATE_SIZE, start

    splitter = Splitter()
    for fold, (split_seed, training_seed) in enumerate(
        zip(unit.split_seeds, unit.training_seeds, strict=True)
    ):
        split = splitter.permutation(int(split_seed), len(unit.rows))
        for tasks in pairs(len(unit.targets)):
            stream = np.empty(STATE_SIZE, dtype=np.uint32)
            start(stream, int(training_seed))
            yield FoldJob(tasks=tasks, fold=fold, split=split, stream=stream)


class _Crew:
    """Threads that work off jobs, and the caller's thread that watches over them."""

    def __init__(
        self, work: Callable[[FoldJob], int], jobs: Iterator[FoldJob], stop: NDArray[np.uint8]
    ) -> None:
        self._work = work
        self._jobs = jobs
        self._stop = stop
        self._lock = threading.Lock()
        self._done = 0
        self._failure: BaseException | None = None

    def work(self, threads: int, progress: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
        crew = [
            threading.Thread(target=self._run, name=f"fold-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in crew:
            thread.start()
        asked_to_stop = False
        try:
            for thread in crew:
                while thread.is_alive():
                    thread.join(LOOK_EVERY_S)
                    self._report(progress)
                    if not asked_to_stop and cancelled():
                        asked_to_stop = True
                        self._stop[0] = 1
        finally:  # also when progress or cancelled raised
            self._stop[0] = 1
            for thread in crew:
                thread.join()
        if self._failure is not None:
            raise self._failure
        if asked_to_stop:
            raise Cancelled()
        self._report(progress)

    def _run(self) -> None:
        try:
            while not self._stop[0]:
                with self._lock:
                    job = next(self._jobs, None)
                if job is None:
                    return
                done = self._work(job)
                with self._lock:
                    self._done += done
        except BaseException as failure:  # noqa: BLE001 - raised again in the caller's thread
            with self._lock:
                self._failure = failure
            self._stop[0] = 1

    def _report(self, progress: Callable[[int], None]) -> None:
        with self._lock:
            done, self._done = self._done, 0
        if done:
            progress(done)
