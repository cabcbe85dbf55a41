"""``run``, the daemon until SIGTERM, and ``once``: process everything that waits, push the board and end."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from scoring.errors import InfrastructureError, NeucoError
from scoring.printable import count_of
from worker.challenge.configuration import Configuration
from worker.daemon.health import HealthServer, health
from worker.daemon.signals import Signals, Stopped, notify
from worker.daemon.start import leading, reload, utc_now
from worker.daemon.worker import Waiting, Worker, intervals
from worker.evalai import WINDOW
from worker.runtime import storage
from worker.runtime.acts import begin
from worker.state import Deposed, LeaderLock

if TYPE_CHECKING:
    from worker.daemon.schedule import Schedule

LONGEST_WAIT_S = 1.0
"""Retries and answers have their times; one second late is soon enough."""
BUSY_WAIT_S = 0.25
"""While a child runs: its memory is measured at every step."""


def run(path: Path, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
    """Run the daemon until SIGTERM; if another worker leads and the state is on PostgreSQL, first wait until that ends.

    Raises:
        OrganizerError: As :func:`leading`; or if EvalAI's challenge is not the configured one.
        InfrastructureError: As :func:`leading`.
        Deposed: If the lock is lost, or another worker has taken the lead.
    """
    from worker.daemon.schedule import Schedule  # APScheduler takes a tenth of a second to load

    signals = Signals()
    log = structlog.get_logger("neuco_worker")
    with suppress(Stopped), leading(path, signals, wait=True, checkpoint=checkpoint) as (worker, lock):
        worker.stepped_at = utc_now()
        schedule = Schedule(worker.context.timetable, worker.context.wake)
        with closing(schedule), served(worker):
            log.info("Worker started.", event_key="run.start", pid=os.getpid())
            notify("READY=1")
            repeat(path, worker, lock, signals, schedule=schedule)
            send_alerts(worker, signals)
            notify("STOPPING=1")
            log.info("Worker stopped.", event_key="run.end")
        if worker.intake.calls.fatal is not None:
            raise worker.intake.calls.fatal


def served(worker: Worker) -> AbstractContextManager[object]:
    """Serve the worker's health inside the block, if that is configured."""
    address = worker.context.configuration.healthz
    if address is None:
        return nullcontext()
    return closing(HealthServer(address, partial(health, worker, utc_now)))


def repeat(
    path: Path,
    worker: Worker,
    lock: LeaderLock,
    signals: Signals,
    *,
    schedule: Schedule,
) -> None:
    """Step repeatedly; unless a step should follow at once, wait until something is due, or an event wakes the loop.

    Raises:
        Deposed: If the lead is lost.
    """
    while not signals.stop.is_set() and worker.intake.calls.fatal is None:
        signals.wake.clear()
        if signals.reload_asked() and not reload(path, worker):
            signals.reload.set()
        lock.check()
        if schedule.keep(intervals(worker.context.configuration), utc_now(), time.monotonic()):
            worker.intake.calls.doubt_clock()
        at_once, completed = step(worker, utc_now())
        if completed:
            worker.stepped_at = utc_now()
            notify("WATCHDOG=1")
        if not at_once and worker.intake.calls.fatal is None:
            signals.wake.wait(timeout=BUSY_WAIT_S if worker.busy else LONGEST_WAIT_S)


def step(worker: Worker, now: datetime) -> tuple[bool, bool]:
    """Do one step; return whether the next one should follow at once, and whether this one was completed.

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


def send_alerts(worker: Worker, signals: Signals) -> None:
    """Let the alerts reach the webhook before the process ends; after SIGTERM, or if that fails, the next start sends them."""
    while not signals.stop.is_set():
        worker.alerting.collect(utc_now())
        if not begin(worker.context.store, utc_now(), worker.alerting) and not worker.alerting.busy:
            break
        signals.wake.wait(timeout=WAIT_S)
        signals.wake.clear()


# `once` gives up if nothing has progressed for this long: a minute's calls may be used up, and are allowed again one by one.
ONCE_STUCK_S = WINDOW.total_seconds() + 15
WAIT_S = 0.25


def once(path: Path, *, tell: Callable[[str], None] = lambda _: None) -> None:
    """Process everything that waits, push the board and return; meant for cron.

    Args:
        path: The configuration file.
        tell: Called with a sentence when the only thing to do is to wait.

    Raises:
        OrganizerError: If configuration, credentials or tasks are wrong, or EvalAI refuses the token.
        InfrastructureError: If another worker leads, or if something stays undone: EvalAI or the repository cannot be reached, a submission
            is on hold, or SIGTERM came.
    """
    signals = Signals()
    try:
        with leading(path, signals) as (worker, lock):
            failure = _drain(worker, lock, signals, tell)
            send_alerts(worker, signals)
            if failure is not None:
                raise failure
            if signals.stop.is_set():
                raise Stopped
    except Stopped:
        raise InfrastructureError(
            "The command was stopped before everything was finished.",
            hint="Run the command again.",
            code="once.stopped",
        ) from None


def _drain(
    worker: Worker, lock: LeaderLock, signals: Signals, tell: Callable[[str], None]
) -> NeucoError | None:
    """Step until nothing is left; return the error if something stays undone, or EvalAI's challenge is not the configured one.

    Raises:
        NeucoError: If the state fails.
    """
    configuration = worker.context.configuration
    patience = Patience(configuration)
    announced = None
    while not signals.stop.is_set():
        signals.wake.clear()
        now = utc_now()
        lock.check()
        try:
            moved = worker.step(now)
        except NeucoError as error:  # the state failed: a fault of its disk explains more
            raise storage.fault(configuration.state_dir) or error from error
        if moved:
            continue
        refusal = worker.intake.calls.fatal or worker.intake.calls.refused
        if refusal is not None:
            return refusal
        left = worker.waiting(now)
        if worker.intake.drained and not worker.busy:
            if left.nothing:
                return None
            if left.board and not left.active:
                worker.publishing.lift_interval()
        nearly = left.active > 0 and worker.beacon.is_near(now)  # nothing is scored before the value exists
        if not nearly and patience.ended(worker, left, time.monotonic()):
            worker.intake.calls.tell_of_silence(now)
            return InfrastructureError(
                f"Not everything was finished: {' '.join(reasons(worker, left))}",
                hint="Nothing is lost. Fix what is named above, if anything, and run the command again.",
                code="once.undone",
            )
        moment = None if worker.busy else worker.intake.next_answer_at(now)
        if moment not in (None, announced):
            tell(
                f"Waiting until {moment:%H:%M:%S} UTC: answers are sent on a {configuration.submission.answer_grid:g}-second grid"
                " (submission.answer_grid)."
            )
            announced = moment
        signals.wake.wait(timeout=WAIT_S)
    return None


class Patience:
    """Decides when `once` gives up: when nothing has progressed for a while. A message is progress, finding the queue empty is not.

    Args:
        configuration: Retries come after `evalai.poll_every`, answers at multiples of `submission.answer_grid`.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._after_failures_s = min(10.0, 3 * configuration.evalai.poll_every)
        self._at_all_s = max(ONCE_STUCK_S, 2 * configuration.submission.answer_grid)
        self._seen: tuple[Waiting, str | None] | None = None
        self._since_s = 0.0

    def ended(self, worker: Worker, left: Waiting, clock_s: float) -> bool:
        """Return whether it is time to give up; while a child works or a draw is fetched, their own deadlines apply instead."""
        seen = left, worker.intake.session.receipt
        if seen != self._seen or worker.evaluation.busy or worker.fetching.busy or worker.beacon.busy:
            self._seen, self._since_s = seen, clock_s
        # A failed push does not count while the queue is still being read, because what waits there is not known yet.
        unpushed = worker.publishing.last_error is not None and worker.intake.drained
        failing = worker.intake.calls.failing or unpushed or left.stuck + left.paused > 0
        return clock_s - self._since_s > (
            self._after_failures_s if failing and not left.active else self._at_all_s
        )


def reasons(worker: Worker, left: Waiting) -> Iterator[str]:
    """Return what is left and, if known, why; everything that keeps `once` from ending has a sentence here."""
    if worker.intake.calls.last_error is not None:
        yield worker.intake.calls.last_error.sentence
    if not worker.intake.drained:
        yield "EvalAI's queue and its list of submissions were not read to the end."
    if left.active:
        yield f"To be scored or answered: {count_of(left.active, 'submission')}."
    if left.stuck:
        yield f"Waiting after failures: {count_of(left.stuck, 'submission')}; see `neuco-worker status`."
    if left.paused:
        yield f"Waiting for `challenge pause --undo`, because scoring is paused: {count_of(left.paused, 'submission')}."
    if left.board:
        error = worker.publishing.last_error
        yield "The last board was not pushed." if error is None else error.sentence
