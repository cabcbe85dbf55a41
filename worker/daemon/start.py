"""Start: turn a configuration file into a worker that is ready to step; and read that file again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from urllib.parse import unquote, urlsplit

import structlog

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.challenge.setups import read_secret
from worker.challenge.signing import read_signer
from worker.daemon import logs
from worker.daemon.signals import Signals, Stopped, notify
from worker.daemon.worker import Worker, make_client
from worker.publishing import publisher_settings
from worker.state import Deposed, LeaderLock, StateFailed, Store, leader_lock, refused

REFUSED = "The changed configuration was refused, and the old one stays in effect; the log says why."
TAKE_EVERY_S = 3.0  # between two tries to take the lock of a worker on another machine


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@contextmanager
def leading(
    path: Path,
    signals: Signals,
    *,
    wait: bool = False,
    checkpoint: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Worker, LeaderLock]]:
    """Take the leader's lock, load everything, and yield a worker that leads, with its lock; close everything at the end.

    Args:
        path: The configuration file.
        signals: Stop and wake the worker; they are handled from here on.
        wait: Whether to wait until another worker ends, if the state is on PostgreSQL.
        checkpoint: See :class:`worker.challenge.context.Context`.

    Raises:
        OrganizerError: If configuration, credentials or tasks are wrong.
        InfrastructureError: If another worker leads, or the server with the state cannot be reached.
        Stopped: On SIGTERM.
    """
    signals.install()
    configuration = load(path)
    with closing(leader_lock(configuration.database_url, configuration.state_dir)) as lock:
        take(lock, signals, wait=wait and configuration.database_file is None)
        fresh = load(path)  # it may have been edited during the wait
        _check_place(fresh, configuration)  # the lock is of the old one
        client = make_client(fresh)
        if not fresh.evalai.challenge:
            raise OrganizerError(
                "evalai.challenge is 0, because the challenge does not have a number at EvalAI yet.",
                hint="Upload bundle.zip to EvalAI. Then set evalai.challenge to the number in the address of the challenge's page, and"
                " evalai.queue to the queue in its Manage tab.",
                code="config.no_number",
            )
        logs.set_up(secrets=_secrets(fresh))
        with closing(Store(fresh.database_url, checkpoint=checkpoint, stopping=signals.stop)) as store:
            worker = Worker(
                fresh,
                store,
                client,
                now=utc_now(),
                random=SystemRandom(),
                wake=signals.wake.set,
                checkpoint=checkpoint,
                fresh_client=make_client,
            )
            signals.starting = False
            try:
                yield worker, lock
            finally:
                worker.stop(utc_now())


def take(lock: LeaderLock, signals: Signals, *, wait: bool) -> None:
    """Take the leader's lock, if necessary after waiting for it.

    Raises:
        InfrastructureError: If another worker has the lock and `wait` is false, or the server cannot be reached.
        Stopped: On SIGTERM.
    """
    signals.starting = False  # to interrupt the database's driver would end in an error of its own
    if not lock.take():
        if not wait:
            raise refused()
        logs.set_up()
        log = structlog.get_logger("neuco_worker")
        log.info("Waiting until the worker that leads ends.", event_key="run.wait")
        notify("READY=1")
        while not signals.stop.is_set() and not lock.take():
            notify("WATCHDOG=1")
            signals.stop.wait(TAKE_EVERY_S)
    signals.starting = True
    if signals.stop_heard:
        raise Stopped


def reload(path: Path, worker: Worker) -> bool:
    """Apply a changed configuration; refuse a bad one and keep the old one.

    Returns:
        False if the state could not be written, so that the reload must be tried again.

    Raises:
        Deposed: If another worker has taken the lead.
    """
    log = structlog.get_logger("neuco_worker")
    try:
        refusal = _refusal(path, worker)
        with worker.context.store.write() as tx:
            tx.set_alert("reload", "reload.refused", REFUSED if refusal else None, now=utc_now())
    except Deposed:
        raise
    except StateFailed as error:  # locked or full: try again
        log.error(error.message, event_key=error.code)
        return False
    if refusal:
        log.error(f"New configuration refused: {refusal}", event_key="reload.refused")
    else:
        log.info("Configuration reloaded.", event_key="reload.done")
    return True


def _refusal(path: Path, worker: Worker) -> str:
    """Apply a changed configuration, or return why it cannot be applied.

    Raises:
        StateFailed: If the state cannot be written.
    """
    try:
        configuration = load(path)
        logs.set_up(secrets=_secrets(configuration))
        make_client(configuration).close()
        publisher_settings(configuration)
        _check_place(configuration, worker.context.configuration)
        worker.reload(configuration, now=utc_now())
    except StateFailed:
        raise
    except NeucoError as error:
        return error.message
    return ""


def _check_place(configuration: Configuration, old: Configuration) -> None:
    """Check that a configuration that was read again names the same state and challenge.

    Raises:
        OrganizerError: If it does not.
    """
    if _place(configuration) != _place(old):
        raise OrganizerError(
            "A running worker cannot change its state or its EvalAI challenge.",
            hint="Restart the worker.",
            code="reload.needs_restart",
        )


def _place(configuration: Configuration) -> tuple[object, ...]:
    """Return the settings that cannot change while a worker runs: where its state is, and of which challenge."""
    evalai = configuration.evalai
    return configuration.database_url, evalai.server, evalai.challenge, evalai.queue


def _secrets(configuration: Configuration) -> list[str]:
    """Collect the values that must never be logged.

    Raises:
        OrganizerError: If one of them is missing or is invalid.
    """
    values = [read_secret(configuration).hex(), read_signer(configuration).seed.hex()]
    values += [
        configuration.secret(reference, key).get_secret_value()
        for key, reference in configuration.references().items()
        if key != "leaderboard.ssh_key"  # only ssh reads that file
    ]
    if configuration.database_file is None and (password := urlsplit(configuration.state).password):
        values += [password, unquote(password)]
    return values
