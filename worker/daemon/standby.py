"""Standby: on PostgreSQL, a second daemon waits for the leader's lock and checks that it could take over."""

from __future__ import annotations

import contextlib
import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import structlog

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.challenge.secrets import read_challenge_secret
from worker.daemon.health import condition, room
from worker.daemon.jobs import intervals_s
from worker.daemon.leadership import STANDBY
from worker.daemon.signals import Signals
from worker.daemon.watchdog import Watchdog, notify
from worker.daemon.worker import make_client
from worker.fairness.canonical import digest
from worker.publishing import publisher_settings
from worker.runtime import Job, Timetable, storage
from worker.runtime.files import FileStore
from worker.state import LeaderLock, Store, Transaction

LOOK_EVERY_S = 3.0  # between two tries to take the lock


class Standby:
    """A daemon that waits for the leader's lock.

    Args:
        path: The configuration file, which is read again from time to time.
        configuration: The configuration at the start.
        lock: The lock, which another process holds.
        signals: Ask it to stop, or to read the configuration again.
    """

    def __init__(self, path: Path, configuration: Configuration, lock: LeaderLock, signals: Signals) -> None:
        self._path = path
        self._configuration = configuration
        self._lock = lock
        self._signals = signals
        self._host = socket.gethostname()
        self._log = structlog.get_logger("neuco_worker")
        self._timetable = Timetable(intervals_s(configuration))
        self._told: str | None = None  # code of the error of an unreachable server that was already logged
        self._watchdog = Watchdog(datetime.now(UTC))
        _make(configuration.state_dir)

    def wait(self) -> bool:
        """Wait for the lock; return whether this process has it, which is not the case after a stop."""
        self._log.info(f"Waiting as standby; {self._lock.holder()} leads.", event_key="standby.begin")
        self._signals.starting = False
        notify("READY=1")
        while not self._signals.stop.is_set():
            self._signals.wake.clear()
            if self._look(datetime.now(UTC)):
                self._log.info("Leader ended; this worker took over.", event_key="standby.end")
                self._signals.starting = True
                return True
            self._watchdog.feed(datetime.now(UTC))
            self._signals.wake.wait(timeout=LOOK_EVERY_S)
        notify("STOPPING=1")
        with contextlib.suppress(NeucoError):
            self._tell(None, datetime.now(UTC))
        return False

    def report(self) -> dict[str, object]:
        """Return how long this worker has been silent, and the state of its disk."""
        state_dir, reserve = (
            self._configuration.state_dir,
            self._configuration.submission.disk_reserve_gigabytes,
        )
        error = storage.fault(state_dir)
        said = condition("standby", datetime.now(UTC) - self._watchdog.fed_at, error)
        return said if error else {**said, **room(FileStore(state_dir), reserve)}

    def _look(self, now: datetime) -> bool:
        """Try to take the lock, and from time to time check what taking over would need; return whether the lock was taken."""
        try:
            if self._lock.take():
                return True
            if self._signals.reload_asked() or self._timetable.due(Job.STANDBY, now):
                self._tell(lacking(self._path), now)
                self._timetable.done(Job.STANDBY, now)
            self._told = None
        except NeucoError as error:  # the server cannot be reached, which ends the leader, too
            if error.code != self._told:
                self._log.error(error.message, event_key=error.code)
            self._told = error.code
        return False

    def _tell(self, error: NeucoError | None, now: datetime) -> None:
        """Raise this standby's alert, or resolve it."""
        key = f"{STANDBY}{self._host}"
        with closing(Store(self._configuration.database_url)) as store:
            with store.read() as tx:
                raised = any(alert.key == key for alert in tx.alerts())
            if error is not None:
                text = f"The standby worker on {self._host} cannot take over: {error.message}"
                with store.write() as tx:
                    tx.raise_alert(key, "standby.unfit", text, now=now)
                self._log.warning(text, event_key="standby.unfit")
            elif raised:
                with store.write() as tx:
                    tx.resolve_alert(key, now=now)
                self._log.info("This worker can take over again.", event_key="standby.fit")


def lacking(path: Path) -> NeucoError | None:
    """Return the error that would keep this machine from leading, None if there is none.

    Args:
        path: The configuration file.
    """
    try:
        configuration = load(path)
        make_client(configuration).close()
        publisher_settings(configuration)
        with closing(Store(configuration.database_url)) as store, store.read() as tx:
            _check_secret(tx, configuration)
    except NeucoError as error:
        return error
    _make(configuration.state_dir)
    if fault := storage.fault(configuration.state_dir):
        return fault
    reserve = configuration.submission.disk_reserve_gigabytes
    return storage.below_reserve(FileStore(configuration.state_dir).free_bytes(), reserve)


def _make(folder: Path) -> None:
    with contextlib.suppress(OSError):  # if this fails, looking into the folder reports why
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _check_secret(tx: Transaction, configuration: Configuration) -> None:
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    entries = tx.commitments()
    if entries and entries[-1][1]["opening"]["secret"] != digest("secret", secret):
        raise OrganizerError(
            "The challenge's secret is not the one in the commitment.",
            cure="Copy the secret from the machine of the leading worker.",
            code="secret.changed",
        )
