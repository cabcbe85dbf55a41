"""A pool of threads that trains folds, while the caller's thread reports progress and can stop them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scoring.errors import Cancelled

LOOK_EVERY_S = 0.1  # how often the caller's thread asks whether to stop

Job = TypeVar("Job")
Result = TypeVar("Result")


def train_in_order(
    train: Callable[[Job], Result | None],
    jobs: Iterable[Job],
    *,
    threads: int,
    stop: NDArray[np.uint8],
    finished: Callable[[Result], None],
    cancelled: Callable[[], bool],
) -> list[Result]:
    """Run all jobs, a few at a time, and return their results in order.

    ``jobs`` is consumed in the caller's thread, in order, so making a job may advance a random stream.

    Args:
        train: Runs one job; returns None only if it was stopped.
        jobs: The jobs.
        threads: How many jobs run at once.
        stop: One byte that ``train`` polls; set to 1 to stop it.
        finished: Called with each result, in order.
        cancelled: Asked ten times a second whether to stop.

    Raises:
        Cancelled: If ``cancelled`` said so.
    """
    results: list[Result] = []
    waiting: deque[Future[Result | None]] = deque()

    def take_first() -> None:
        first = waiting.popleft()
        while not wait((first,), timeout=LOOK_EVERY_S).done:
            if cancelled():
                raise Cancelled()
        result = first.result()
        if result is None or cancelled():
            raise Cancelled()
        finished(result)
        results.append(result)

    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="fold") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(train, job))
                if len(waiting) > 2 * threads:
                    take_first()
            while waiting:
                take_first()
        except BaseException:
            stop[0] = 1  # also on Ctrl-C, because the pool waits for running jobs
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
