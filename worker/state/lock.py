"""The leader's lock: one process at a time takes and answers submissions, pushes, and decides what comes next.

On SQLite it is the lock of a file in the state directory, which the kernel releases when the process ends for any reason; children do not
inherit it. On PostgreSQL it is an advisory lock of a separate session, which the server releases with the connection.

The package filelock is not enough: it cannot take a brief shared lock, by which a command finds out who leads without blocking a
leader. A loop around ``flock`` is needed in any case, and is simpler than a dependency.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from abc import ABC, abstractmethod
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from scoring.errors import InfrastructureError
from worker.state import servers
from worker.state.leadership import Deposed
from worker.state.store import typed

# A child that has just been forked holds the lock of a file until it executes its own program.
PATIENCE_S = 2.0
TRY_EVERY_S = 0.05
LOOK_S = 1.0  # between two checks of a session that should still exist
CONNECT_WITHIN_S = 15.0
LONGEST_NAME = 63  # of a PostgreSQL session, in bytes


class LeaderLock(ABC):
    """A lock that one process at a time holds."""

    @abstractmethod
    def take(self) -> bool:
        """Take the lock, or keep it; return whether this process has it.

        Raises:
            InfrastructureError: If the server cannot be reached.
        """

    @abstractmethod
    def held(self) -> bool:
        """Return whether this process still has the lock."""

    @abstractmethod
    def holder(self) -> str | None:
        """Return who holds the lock, None if nobody does."""

    @abstractmethod
    def close(self) -> None:
        """Release the lock, if this process has it."""

    def check(self) -> None:
        """Check that this process still has the lock.

        Raises:
            Deposed: If it does not.
        """
        if not self.held():
            raise Deposed(
                "The database connection that makes this worker the leader was lost, so another worker may lead now.",
                cure="Check that the database is running. When this worker is restarted, it leads, or waits as the standby.",
                code="leader.lock_lost",
            )

    def refused(self) -> InfrastructureError:
        """Return the error for a process that did not get the lock."""
        return InfrastructureError(
            f"Another worker runs on this state: {self.holder() or 'an unknown process'}.",
            cure="Stop that worker first, or wait until it ends.",
            code="state.locked",
        )


def leader_lock(url: str, folder: Path) -> LeaderLock:
    """Return the lock of a state.

    Args:
        url: SQLAlchemy URL of the state.
        folder: The state directory.

    Raises:
        OrganizerError: If the URL is wrong.
    """
    return FileLock(folder) if url.startswith("sqlite") else SessionLock(url)


def _name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


class FileLock(LeaderLock):
    """The lock of a SQLite state.

    Args:
        folder: The state directory.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "worker.lock"
        self._handle: int | None = None

    def take(self) -> bool:
        """Try to take the lock for a short time."""
        if self._handle is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _taken_within(PATIENCE_S, handle):
            os.close(handle)
            return False
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{_name()}\n".encode(), 0)
        self._handle = handle
        return True

    def held(self) -> bool:
        """Return whether it was taken; the kernel never takes it away."""
        return self._handle is not None

    def holder(self) -> str | None:
        """Read the name that the holder wrote; if a shared lock can be taken, there is no holder."""
        if self._handle is not None:
            return _name()
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "an unknown process"
        finally:
            os.close(handle)
        return None

    def close(self) -> None:
        """Close the file, which releases the lock."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)


def _taken_within(wait_s: float, handle: int) -> bool:
    """Take the exclusive lock of an open file, waiting for a process that may release it soon; return whether it was taken."""
    ends = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(TRY_EVERY_S)
        else:
            return True


class SessionLock(LeaderLock):
    """The lock of a state on PostgreSQL.

    Args:
        url: The server's URL.
    """

    def __init__(self, url: str) -> None:
        self._engine = servers.make_engine(url, busy_timeout_s=CONNECT_WITHIN_S)
        self._connection: sa.Connection | None = None
        self._looked_at_s = 0.0

    def take(self) -> bool:
        """Try once, in a session that has our name while it holds the lock."""
        if self._connection is not None:
            return self.held()
        with typed(None):
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if not connection.execute(sa.select(sa.func.pg_try_advisory_lock(servers.LEADER_LOCK))).scalar():
                connection.close()
                return False
            name = _name()[:LONGEST_NAME]
            connection.execute(sa.select(sa.func.set_config("application_name", name, False)))
        self._connection, self._looked_at_s = connection, time.monotonic()
        return True

    def held(self) -> bool:
        """Return whether the session still exists; it is called at every step and asks the server about once a second."""
        if self._connection is None or time.monotonic() - self._looked_at_s < LOOK_S:
            return self._connection is not None
        try:
            self._connection.exec_driver_sql("SELECT 1")
        except DBAPIError:
            self._end_session()
            return False
        self._looked_at_s = time.monotonic()
        return True

    def holder(self) -> str | None:
        """Ask the server whose session has the lock."""
        key = servers.LEADER_LOCK
        query = sa.text(
            "SELECT activity.application_name FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)"
            " WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = :high AND objid = :low"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        with typed(None), self._engine.connect() as connection:
            row = connection.execute(query, {"high": key >> 32, "low": key & 0xFFFFFFFF}).first()
        return None if row is None else str(row[0] or "an unknown process")

    def close(self) -> None:
        """End the session, which releases the lock."""
        self._end_session()
        self._engine.dispose()

    def _end_session(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
