"""Threads that train folds, in order, and the caller's thread that reports and can stop them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scoring.errors import Cancelled
from scoring.local import LOOK_EVERY_S, available_cores

Job = TypeVar("Job")
Result = TypeVar("Result")


def train_in_order(
    work: Callable[[Job], Result | None],
    jobs: Iterator[Job],
    *,
    threads: int | None,
    stop: NDArray[np.uint8],
    progress: Callable[[int], None],
    cancelled: Callable[[], bool],
) -> tuple[Result, ...]:
    """Do all jobs, a few at a time, and return their results in order.

    Jobs are made in the caller's thread when their turn comes, so making one may move a random stream along.

    Args:
        work: Does one job; returns None only if it was stopped.
        jobs: The jobs.
        threads: How many at once; None takes all cores.
        stop: One byte that ``work`` looks at; set to stop it.
        progress: Called with 1 as each is finished.
        cancelled: Asked ten times a second whether to stop.

    Raises:
        Cancelled: If ``cancelled`` said so.
    """
    count = threads or available_cores()
    results: list[Result] = []
    waiting: deque[Future[Result | None]] = deque()
    with ThreadPoolExecutor(max_workers=count, thread_name_prefix="fold") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, job))
                if len(waiting) > 2 * count:
                    results.append(_first(waiting, progress, cancelled))
            while waiting:
                results.append(_first(waiting, progress, cancelled))
        except BaseException:
            stop[0] = 1  # also for Ctrl-C: the pool waits for what runs
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(results)


def _first(
    waiting: deque[Future[Result | None]], progress: Callable[[int], None], cancelled: Callable[[], bool]
) -> Result:
    future = waiting.popleft()
    while not wait((future,), timeout=LOOK_EVERY_S).done:
        if cancelled():
            raise Cancelled()
    result = future.result()
    if result is None or cancelled():
        raise Cancelled()
    progress(1)
    return result
