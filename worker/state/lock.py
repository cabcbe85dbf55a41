"""The leader's lock: one process at a time takes and answers submissions, pushes, and decides what comes next.

On SQLite it is the lock of a file in the state directory, which the kernel releases when the process ends for any reason; children do not
inherit it. On PostgreSQL it is an advisory lock of a separate session, which the server releases with the connection.

The package filelock is not enough: it cannot take a brief shared lock, by which a command finds out whether anybody leads without blocking
a leader.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from scoring.errors import InfrastructureError
from worker.state.database import LEADER_LOCK, make_engine, typed
from worker.state.notices import Deposed

# A command that looks whether anybody leads, or a child that has just been forked, holds the lock for a moment.
PATIENCE_S = 2.0
TRY_EVERY_S = 0.05


class LeaderLock:
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
            InfrastructureError: If its file cannot be written, or the server cannot be reached.
        """
        ends = time.monotonic() + PATIENCE_S
        while not self._try():
            if time.monotonic() >= ends:
                return False
            time.sleep(TRY_EVERY_S)
        return True

    def _try(self) -> bool:
        """Try once to take the lock."""
        self._handle = self._locked(fcntl.LOCK_EX)
        return self._handle is not None

    def _locked(self, kind: int) -> int | None:
        """Open the file and try to take a lock of it; return the open file, None if another process has the lock."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise InfrastructureError(
                f"The state directory {self._path.parent} cannot be written to ({problem.strerror}).",
                cure="Check its owner and its file system, and run the command as the user who owns the state.",
                code="state.unwritable",
            ) from None
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    def held(self) -> bool:
        """Return whether a process has the lock, so that no shared lock can be taken."""
        handle = self._locked(fcntl.LOCK_SH)
        if handle is not None:
            os.close(handle)
        return handle is None

    def check(self) -> None:
        """Check that this process still has the lock; the kernel never takes a file's away.

        Raises:
            Deposed: If it does not, so that another process may have it.
        """

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class SessionLock(LeaderLock):
    """The lock of a state on PostgreSQL.

    Args:
        url: The server's URL.
    """

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url)
        self._session: sa.Connection | None = None

    def _try(self) -> bool:
        with typed(None):
            session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if not session.execute(sa.select(sa.func.pg_try_advisory_lock(LEADER_LOCK))).scalar():
                session.close()
                return False
        self._session = session
        return True

    def held(self) -> bool:
        """Return whether a session has the lock, so that no shared lock can be taken."""
        shared = sa.select(sa.func.pg_try_advisory_xact_lock_shared(LEADER_LOCK))
        with typed(None), self._engine.begin() as connection:
            return not connection.execute(shared).scalar()

    def check(self) -> None:
        """Ask the server whether the session still exists.

        Raises:
            Deposed: If it does not.
        """
        try:
            if self._session is not None:
                self._session.exec_driver_sql("SELECT 1")
        except SQLAlchemyError as error:
            raise Deposed(
                "The database connection that makes this worker the leader was lost, so another worker may lead now.",
                cure="Check that the database is running. When this worker is restarted, it waits until no other worker leads.",
                code="leader.lock_lost",
            ) from error

    def close(self) -> None:
        """End the session, which releases the lock."""
        if self._session is not None:
            self._session.invalidate()  # not back to the pool, where it would keep the lock
            self._session.close()
            self._session = None
        self._engine.dispose()


def leader_lock(url: str, folder: Path) -> LeaderLock:
    """Return the lock of a state.

    Args:
        url: SQLAlchemy URL of the state.
        folder: The state directory.

    Raises:
        OrganizerError: If the URL is wrong.
    """
    return LeaderLock(folder) if url.startswith("sqlite") else SessionLock(url)


def refused() -> InfrastructureError:
    """Return the error for a process that did not get a lock."""
    return InfrastructureError(
        "Another worker runs on this state.",
        cure="Stop that worker first, or wait until it ends; `neuco-worker status` shows its machine and process.",
        code="state.locked",
    )
