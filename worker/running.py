"""Running a worker: the beat for `run`, the drain for `once`, signals, and what systemd wants to hear."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom
from urllib.parse import unquote, urlsplit

import structlog

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker import logs, memory, storage
from worker.beats import Beats
from worker.budget import WINDOW
from worker.cgroup import delegation
from worker.challenge import read_challenge
from worker.configuration import Configuration, load
from worker.daemon import Waiting, Worker, make_client
from worker.evalai import TokenRefused, token_expiry
from worker.health import HealthServer
from worker.lock import only_daemon
from worker.metrics import StateCollector, registry, write_textfile
from worker.rounds import publisher_settings
from worker.secrets import read_challenge_secret
from worker.sharing import worker_name
from worker.state import Store
from worker.status import Status, read_status

MOVES_PER_BEAT = 200  # then the beat ends and the next one goes on, so that the watchdog hears of us
# `once` gives up on what waits when nothing has moved for so long: a minute's calls may be used up, and come back one by one.
ONCE_STUCK_S = WINDOW.total_seconds() + 15


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@dataclass
class Signals:
    """What signals ask for. A handler only puts them into a queue, the one thing that may be done at any moment."""

    stop: threading.Event = field(default_factory=threading.Event)
    wake: threading.Event = field(default_factory=threading.Event)
    reload: bool = False
    _heard: SimpleQueue[int] = field(default_factory=SimpleQueue)

    def install(self) -> None:
        """Listen to SIGTERM and SIGINT (stop) and SIGHUP (reload).

        A handler interrupts the thread that waits for our events, perhaps while it holds a lock of theirs: there, setting one would wait
        for ever. So a thread of its own sets them.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda heard, _: self._heard.put(heard))
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def _listen(self) -> None:
        while True:
            if self._heard.get() == signal.SIGHUP:
                self.reload = True
            else:
                self.stop.set()
            self.wake.set()


def notify(state: str) -> None:
    """Tell systemd something (READY=1, WATCHDOG=1, STOPPING=1); nothing happens without it."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
    ):
        channel.sendto(state.encode(), address)


@contextmanager
def started(
    path: Path, *, wake: Callable[[], None], checkpoint: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[Configuration, Worker]]:
    """Load everything, take the lock, and yield a worker; what it has open is closed at the end.

    Raises:
        OrganizerError: If configuration, credentials or tasks are wrong.
        InfrastructureError: If another daemon runs on the state.
    """
    configuration = load(path)
    client = make_client(configuration)
    logs.set_up(secrets=_secrets(configuration))
    with (
        nullcontext() if configuration.shared_state else only_daemon(configuration.state_dir),
        closing(Store(configuration.database_url, checkpoint=checkpoint)) as store,
    ):
        worker = Worker(
            configuration,
            read_challenge(configuration, store),
            store,
            client,
            now=utc_now(),
            random=SystemRandom(),
            name=worker_name() if configuration.shared_state else f"{socket.gethostname()}:{os.getpid()}",
            wake=wake,
            checkpoint=checkpoint,
            fresh_client=make_client,
            cgroup=delegation(),
        )
        try:
            yield configuration, worker
        finally:
            worker.stop(utc_now())


def run(path: Path, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
    """Run until SIGTERM: the daemon.

    A beat goes on as long as something moves. It alone feeds systemd's watchdog, so a loop that hangs is restarted.

    Raises:
        OrganizerError: As :func:`started`; or if EvalAI's challenge is not the configured one.
    """
    memory.return_early()
    signals = Signals()
    signals.install()
    with (
        started(path, wake=signals.wake.set, checkpoint=checkpoint) as (configuration, worker),
        ExitStack() as open_ones,
    ):
        log = structlog.get_logger("neuco_worker")
        log.info("The worker runs.", event_key="run.start", pid=os.getpid())
        fatal: list[NeucoError] = []
        last_beat = [utc_now()]

        def beat() -> None:
            last_beat[0] = utc_now()
            try:
                if signals.reload:
                    signals.reload = False
                    _reload(path, worker)
                for _ in range(MOVES_PER_BEAT):
                    if signals.stop.is_set():
                        return
                    signals.wake.clear()
                    if not worker.step(utc_now()):
                        break
                else:
                    signals.wake.set()
                if worker.fatal is not None:
                    fatal.append(worker.fatal)
                    signals.stop.set()
            except NeucoError as error:  # a locked or full database: the next beat tries again
                cause = worker.failed(error, utc_now())
                log.error(cause.message, event_key=cause.code)
            notify("WATCHDOG=1")

        if configuration.metrics.listen is not None:
            figures = registry(collector(worker))
            health = HealthServer(
                configuration.metrics.listen,
                figures,
                last_beat=lambda: last_beat[0],
                problem=lambda: worker.problem or storage.trouble(configuration.state_dir),
                free_bytes=worker.files.free_bytes,
                reserve_gigabytes=lambda: worker.context.configuration.submission.disk_reserve_gigabytes,
                clock=utc_now,
            )
            open_ones.callback(health.close)
        Beats(beat=beat, wake=signals.wake, stop=signals.stop, busy=lambda: worker.busy).run(
            began=lambda: notify("READY=1")
        )
        notify("STOPPING=1")
        log.info("The worker ends.", event_key="run.end")
        if fatal:
            raise fatal[0]


def _reload(path: Path, worker: Worker) -> None:
    """Take up a changed configuration; a bad one is refused and the old one kept."""
    log = structlog.get_logger("neuco_worker")
    old = worker.context.configuration
    try:
        configuration = load(path)
        phases = read_challenge(configuration, worker.context.store)
        logs.set_up(secrets=_secrets(configuration))
        make_client(configuration).close()
        publisher_settings(configuration)
        if _place(configuration) != _place(old):
            raise OrganizerError(
                "The state or the EvalAI challenge of a running worker cannot change.",
                cure="Stop the worker and start it again.",
                code="reload.needs_restart",
            )
    except NeucoError as error:
        log.error(f"The new configuration is refused: {error.message}", event_key="reload.refused")
        return
    try:
        worker.reload(configuration, phases, now=utc_now())
    except OrganizerError as error:
        log.error(f"The new configuration is refused: {error.message}", event_key="reload.refused")
        return
    log.info("The configuration was read again.", event_key="reload.done")


def _place(configuration: Configuration) -> tuple[object, ...]:
    """Return what a worker cannot change while it runs: where its state is, and whose submissions that state knows."""
    evalai = configuration.evalai
    return configuration.database_url, evalai.server, evalai.challenge, evalai.queue


def once(path: Path, *, on_step: Callable[[Worker], None] = lambda _: None) -> None:
    """Drain what waits, push the board, return: for cron.

    Raises:
        OrganizerError: If configuration, credentials or tasks are wrong, or EvalAI refuses the token.
        InfrastructureError: If something stays undone (EvalAI or the repository unreachable, a submission held).
        Cancelled: On SIGTERM.
    """
    signals = Signals()
    signals.install()
    with started(path, wake=signals.wake.set) as (configuration, worker):
        patience = Patience(configuration)
        worker.intake.to_the_end = True
        while not signals.stop.is_set():
            signals.wake.clear()
            now = utc_now()
            try:
                moved = worker.step(now)
            except NeucoError as error:  # the state: what it lies on says it better
                raise storage.trouble(configuration.state_dir) or error from error
            if moved:
                on_step(worker)
                continue
            if worker.fatal is not None:
                raise worker.fatal
            refused = worker.intake.last_error
            if isinstance(refused, TokenRefused):
                raise refused
            left = worker.waiting(now)
            if worker.intake.drained and not worker.busy:
                if left.nothing:
                    break
                if left.board and not left.active:
                    worker.publishing.lift_interval()
            if patience.ended(worker, left, time.monotonic()):
                raise _undone(worker, now)
            signals.wake.wait(timeout=0.25)
        if configuration.metrics.textfile is not None:
            write_textfile(collector(worker), configuration.path(configuration.metrics.textfile))
        if signals.stop.is_set():
            raise InfrastructureError(
                "Stopped before everything was done.", cure="Run it again.", code="once.stopped"
            )


def collector(worker: Worker) -> StateCollector:
    """Return what turns this worker's state into metrics."""
    store, configuration = worker.context.store, worker.context.configuration
    token = configuration.secret(configuration.evalai.token, "evalai.token").get_secret_value()

    def status() -> Status:
        return read_status(
            store, now=utc_now(), token_expires=token_expiry(token), free_bytes=worker.files.free_bytes()
        )

    return StateCollector(store, status, utc_now)


class Patience:
    """Decides when `once` gives up: nothing has come nearer its end for a while. Looking at an empty queue is no progress.

    Args:
        configuration: Retries come after `evalai.poll_every`, answers at multiples of `submission.answer_grid`.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._after_failures_s = min(10.0, 3 * configuration.evalai.poll_every)
        self._at_all_s = max(ONCE_STUCK_S, 2 * configuration.submission.answer_grid)
        self._left: Waiting | None = None
        self._since_s = 0.0

    def ended(self, worker: Worker, left: Waiting, clock_s: float) -> bool:
        """Tell whether it is time to give up; a child at work has a deadline of its own."""
        if left != self._left or worker.evaluation.busy or worker.fetching.busy:
            self._left, self._since_s = left, clock_s
        # A failed push says nothing while the queue is still being read: what waits there is not even known.
        unpushed = worker.publishing.tries > 0 and worker.intake.drained
        failing = worker.intake.failing or unpushed or left.stuck + left.paused > 0
        return clock_s - self._since_s > (
            self._after_failures_s if failing and not left.active else self._at_all_s
        )


def _undone(worker: Worker, now: datetime) -> InfrastructureError:
    return InfrastructureError(
        "Not everything could be done: " + " ".join(_reasons(worker, worker.waiting(now))),
        cure="Run it again; nothing is lost.",
        code="once.undone",
    )


def _reasons(worker: Worker, left: Waiting) -> Iterator[str]:
    """Say what is left, and why where that is known; whatever keeps `once` from ending has a sentence here."""
    if worker.intake.last_error is not None:
        yield worker.intake.last_error.sentence
    if not worker.intake.drained:
        yield "EvalAI's queue and its list of submissions were not read to the end."
    if worker.context.behind:
        phases = ", ".join(sorted(worker.context.behind))
        yield f"Submissions to {phases} are left to the machine that has the right files."
    if left.active:
        yield f"{_waits(left.active)} for scores or for the moment of the answer."
    if left.stuck:
        yield f"{_waits(left.stuck)} after failures; see `neuco-worker status`."
    if left.paused:
        yield f"{_waits(left.paused)} for `challenge resume`, because scoring is paused."
    if left.owed:
        calls = "1 call to EvalAI (an answer, or a message to delete) is"
        if left.owed > 1:
            calls = f"{left.owed} calls to EvalAI (answers, or messages to delete) are"
        yield f"{calls} still owed."
    if left.board:
        error = worker.publishing.last_error
        yield "The last board was not pushed." if error is None else error.sentence


def _waits(submissions: int) -> str:
    return "1 submission waits" if submissions == 1 else f"{submissions} submissions wait"


def _secrets(configuration: Configuration) -> list[str]:
    """Collect the values that must never be logged.

    Raises:
        OrganizerError: If one of them is missing or cannot be one.
    """
    secret = configuration.path(configuration.challenge.secret)
    read_challenge_secret(secret)
    references = [
        (configuration.evalai.token, "evalai.token"),
        (configuration.leaderboard.token, "leaderboard.token"),
        (configuration.alerts.webhook, "alerts.webhook"),
    ]
    values = [
        configuration.secret(reference, key).get_secret_value() for reference, key in references if reference
    ]
    if configuration.shared_state and (password := urlsplit(configuration.state).password):
        values += [password, unquote(password)]
    values.append(secret.read_text(encoding="utf-8").strip())
    return values
