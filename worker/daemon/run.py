"""``run``: the daemon, which runs until SIGTERM."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import datetime
from pathlib import Path

import structlog

from scoring.errors import NeucoError
from worker.challenge.configuration import load
from worker.daemon import logs
from worker.daemon.health import Health, HealthServer
from worker.daemon.metrics import registry
from worker.daemon.signals import Signals, Stopped
from worker.daemon.start import collector, reload, started, utc_now
from worker.daemon.watchdog import Watchdog, notify
from worker.daemon.worker import Worker
from worker.state import Deposed, LeaderLock, leader_lock, refused

TAKE_EVERY_S = 3.0  # between two tries to take the lock of a worker on another machine
LONGEST_WAIT_S = 1.0
"""The database says when retries and answers are due; one second late is soon enough."""
BUSY_WAIT_S = 0.25
"""While a child runs: its memory is measured at every step."""


def run(path: Path, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
    """Run the daemon until SIGTERM; if another worker leads and the state is on PostgreSQL, first wait until that ends.

    Raises:
        OrganizerError: As :func:`started`; or if EvalAI's challenge is not the configured one.
        InfrastructureError: If another worker leads on SQLite, the server with the state cannot be reached, or the lead is lost.
    """
    signals = Signals()
    signals.install()
    try:
        configuration = load(path)
        with closing(leader_lock(configuration.database_url, configuration.state_dir)) as lock:
            take(lock, wait=configuration.database_file is None)
            lead(path, lock, signals, checkpoint=checkpoint)
    except Stopped:  # during the start: nothing is left to do
        return


def take(lock: LeaderLock, *, wait: bool) -> None:
    """Take the leader's lock, if necessary after waiting for it; SIGTERM ends the wait, as it ends a start.

    Raises:
        InfrastructureError: If another worker has the lock and `wait` is false, or the server cannot be reached.
    """
    if lock.take():
        return
    if not wait:
        raise refused()
    logs.set_up()
    log = structlog.get_logger("neuco_worker")
    log.info("Waiting until the worker that leads ends.", event_key="run.wait")
    notify("READY=1")
    while not lock.take():
        notify("WATCHDOG=1")
        time.sleep(TAKE_EVERY_S)


def lead(path: Path, lock: LeaderLock, signals: Signals, *, checkpoint: Callable[[str], None]) -> None:
    """Lead until SIGTERM, or until the lead is lost.

    Raises:
        OrganizerError: As :func:`started`; or if EvalAI's challenge is not the configured one.
        Deposed: If the lock is lost, or another worker has taken the lead.
    """
    with started(path, signals=signals, checkpoint=checkpoint) as (configuration, worker):
        watchdog = Watchdog(utc_now())
        with served(configuration.metrics.listen, worker, watchdog):
            log = structlog.get_logger("neuco_worker")
            log.info("Worker started.", event_key="run.start", pid=os.getpid())
            notify("READY=1")
            repeat(path, worker, lock, signals, watchdog)
            notify("STOPPING=1")
            log.info("Worker stopped.", event_key="run.end")
        if worker.fatal is not None:
            raise worker.fatal


def served(listen: str | None, worker: Worker, watchdog: Watchdog) -> AbstractContextManager[object]:
    """Serve health and metrics inside the block, if that is configured."""
    if listen is None:
        return nullcontext()
    return closing(HealthServer(listen, registry(collector(worker)), Health(worker, watchdog, utc_now)))


def repeat(path: Path, worker: Worker, lock: LeaderLock, signals: Signals, watchdog: Watchdog) -> None:
    """Step repeatedly; when nothing moved, wait until something is due, an event wakes the loop, or the process is stopped.

    Raises:
        Deposed: If the lead is lost.
    """
    while not signals.stop.is_set() and worker.fatal is None:
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
