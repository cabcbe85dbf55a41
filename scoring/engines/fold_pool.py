"""A pool of threads that trains folds, while the caller's thread reports progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Job = TypeVar("Job")
Result = TypeVar("Result")


def train_in_order(
    train: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    threads: int,
    finished: Callable[[Result], None],
    stop: NDArray[np.uint8] | None = None,
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
            if stop is not None:
                stop[0] = 1  # because the pool waits for running jobs
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
