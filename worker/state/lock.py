"""The leader's lock: one process at a time takes and answers submissions, pushes, and decides what comes next.

On SQLite it is the lock of a file in the state directory, which the kernel releases when the process ends for any reason; children do not
inherit it. On PostgreSQL it is an advisory lock of a separate session, which the server releases with the connection.

The package filelock is not enough: it cannot take a brief shared lock, by which a command finds out who leads without blocking a
leader. A loop around ``flock`` is needed in any case, and is simpler than a dependency.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
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
CHECK_EVERY_S = 1.0  # for a session that should still exist
CONNECT_WITHIN_S = 15.0
LONGEST_NAME = 63  # of a PostgreSQL session, in bytes


def _name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


class FileLock:
    """The lock of a SQLite state, which one process at a time holds.

    Args:
        folder: The state directory.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "worker.lock"
        self._handle: int | None = None

    def take(self) -> bool:
        """Try to take the lock for a short time; return whether this process has it.

        Raises:
            InfrastructureError: If its file cannot be written.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise InfrastructureError(
                f"The state directory {self._path.parent} cannot be written to ({problem.strerror}).",
                cure="Check its owner and its file system, and run the command as the user who owns the state.",
                code="state.unwritable",
            ) from None
        ends = time.monotonic() + PATIENCE_S
        while not _locked(handle, fcntl.LOCK_EX):
            if time.monotonic() >= ends:
                os.close(handle)
                return False
            time.sleep(TRY_EVERY_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{_name()}\n".encode(), 0)
        self._handle = handle
        return True

    def check(self) -> None:
        """Do nothing, because the kernel never takes the lock away."""

    def holder(self) -> str | None:
        """Return the name that the holder wrote; None if a shared lock can be taken, so that there is no holder."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _locked(handle, fcntl.LOCK_SH):
                return None
            return os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "an unknown process"
        finally:
            os.close(handle)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _locked(handle: int, kind: int) -> bool:
    """Try to take a lock of an open file; return whether it was taken."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class SessionLock:
    """The lock of a state on PostgreSQL, which one process at a time holds.

    Args:
        url: The server's URL.
    """

    def __init__(self, url: str) -> None:
        self._engine = servers.make_engine(url, busy_timeout_s=CONNECT_WITHIN_S)
        self._session: sa.Connection | None = None
        self._checked_at_s = 0.0

    def take(self) -> bool:
        """Try once to take the lock, in a session that has our name while it holds the lock; return whether this process has it.

        Raises:
            InfrastructureError: If the server cannot be reached.
        """
        with typed(None):
            session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if not session.execute(sa.select(sa.func.pg_try_advisory_lock(servers.LEADER_LOCK))).scalar():
                session.close()
                return False
            session.execute(sa.select(sa.func.set_config("application_name", _name()[:LONGEST_NAME], False)))
        self._session, self._checked_at_s = session, time.monotonic()
        return True

    def check(self) -> None:
        """Ask the server, about once a second, whether the session still exists.

        Raises:
            Deposed: If it does not, so that another process may have the lock.
        """
        if self._session is not None and time.monotonic() - self._checked_at_s >= CHECK_EVERY_S:
            self._checked_at_s = time.monotonic()
            try:
                self._session.exec_driver_sql("SELECT 1")
            except DBAPIError:
                self._end_session()
        if self._session is None:
            raise Deposed(
                "The database connection that makes this worker the leader was lost, so another worker may lead now.",
                cure="Check that the database is running. When this worker is restarted, it waits until no other worker leads.",
                code="leader.lock_lost",
            )

    def holder(self) -> str | None:
        """Ask the server whose session has the lock; None if there is none."""
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
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()
            session.close()


LeaderLock = FileLock | SessionLock


def leader_lock(url: str, folder: Path) -> LeaderLock:
    """Return the lock of a state.

    Args:
        url: SQLAlchemy URL of the state.
        folder: The state directory.

    Raises:
        OrganizerError: If the URL is wrong.
    """
    return FileLock(folder) if url.startswith("sqlite") else SessionLock(url)


def refused(lock: LeaderLock) -> InfrastructureError:
    """Return the error for a process that did not get a lock."""
    return InfrastructureError(
        f"Another worker runs on this state: {lock.holder() or 'an unknown process'}.",
        cure="Stop that worker first, or wait until it ends.",
        code="state.locked",
    )
