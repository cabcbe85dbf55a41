"""``run``: the daemon, which runs until SIGTERM."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import datetime
from pathlib import Path

import structlog

from scoring.errors import NeucoError
from worker.daemon.health import Health, HealthServer
from worker.daemon.metrics import registry
from worker.daemon.signals import Signals, Stopped, Watchdog, notify
from worker.daemon.start import collector, leading, reload, utc_now
from worker.daemon.worker import Worker
from worker.state import Deposed, LeaderLock

LONGEST_WAIT_S = 1.0
"""The database says when retries and answers are due; one second late is soon enough."""
BUSY_WAIT_S = 0.25
"""While a child runs: its memory is measured at every step."""


def run(path: Path, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
    """Run the daemon until SIGTERM; if another worker leads and the state is on PostgreSQL, first wait until that ends.

    Raises:
        OrganizerError: As :func:`leading`; or if EvalAI's challenge is not the configured one.
        InfrastructureError: As :func:`leading`.
        Deposed: If the lock is lost, or another worker has taken the lead.
    """
    signals = Signals()
    signals.install()
    log = structlog.get_logger("neuco_worker")
    with suppress(Stopped), leading(path, signals, wait=True, checkpoint=checkpoint) as (worker, lock):
        watchdog = Watchdog(utc_now())
        with served(worker, watchdog):
            log.info("Worker started.", event_key="run.start", pid=os.getpid())
            notify("READY=1")
            repeat(path, worker, lock, signals, watchdog)
            notify("STOPPING=1")
            log.info("Worker stopped.", event_key="run.end")
        if worker.intake.calls.fatal is not None:
            raise worker.intake.calls.fatal


def served(worker: Worker, watchdog: Watchdog) -> AbstractContextManager[object]:
    """Serve health and metrics inside the block, if that is configured."""
    listen = worker.context.configuration.metrics.listen
    if listen is None:
        return nullcontext()
    return closing(HealthServer(listen, registry(collector(worker)), Health(worker, watchdog, utc_now)))


def repeat(path: Path, worker: Worker, lock: LeaderLock, signals: Signals, watchdog: Watchdog) -> None:
    """Step repeatedly; when nothing moved, wait until something is due, an event wakes the loop, or the process is stopped.

    Raises:
        Deposed: If the lead is lost.
    """
    while not signals.stop.is_set() and worker.intake.calls.fatal is None:
        signals.wake.clear()
        if signals.reload_asked() and not reload(path, worker):
            signals.ask_reload()
        lock.check()
        moved, completed = step(worker, utc_now())
        if completed:
            watchdog.feed(utc_now())
        if not moved:
            signals.wake.wait(timeout=wait_s(worker, utc_now()))


def step(worker: Worker, now: datetime) -> tuple[bool, bool]:
    """Do one step; return whether anything moved, and whether the step was completed.

    Errors are logged, and the next step tries again. A step that finds the database locked or full counts as completed. After an unexpected
    error it does not, and if such errors go on, systemd restarts the worker.

    Raises:
        Deposed: If another worker has taken the lead.
    """
    log = structlog.get_logger("neuco_worker")
    try:
        return worker.step(now), True
    except Deposed:
        raise
    except NeucoError as error:
        cause = worker.failed(error, now)
        log.error(cause.message, event_key=cause.code)
        return False, True
    except Exception as problem:  # noqa: BLE001 - logged and tried again: a defect must not end the daemon
        log.error(
            f"Unexpected {type(problem).__name__} in the main loop.",
            event_key="unexpected",
            traceback=traceback.format_exc(),
        )
        return False, False


def wait_s(worker: Worker, now: datetime) -> float:
    """Return how many seconds the loop may wait if nothing wakes it."""
    longest_s = BUSY_WAIT_S if worker.busy else LONGEST_WAIT_S
    next_at = worker.context.timetable.next_at(now)
    return longest_s if next_at is None else min(longest_s, max((next_at - now).total_seconds(), 0.0))
