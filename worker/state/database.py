"""The database's engine for PostgreSQL, the errors of both drivers as ours, and the leader's lock.

The leader is the one process that takes and answers submissions, pushes, and decides what comes next. On SQLite its lock is that of a file
in the state directory, which the kernel releases when the process ends for any reason; children do not inherit it. On PostgreSQL it is an
advisory lock of a separate session, which the server releases with the connection. (The package filelock is not enough: it cannot take a
brief shared lock, by which a command finds out whether anybody leads without blocking a leader.)

Another advisory lock of a server, that of a transaction, is the write lock, so that the store's methods work as on SQLite.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    ProgrammingError,
    SQLAlchemyError,
)

from scoring.errors import InfrastructureError, OrganizerError
from worker.state.leadership import Deposed, StateFailed

if TYPE_CHECKING:
    import psycopg

CONNECT_WITHIN_S = 10
LOCK_WITHIN_S = 15  # for a lock of a row or a table
# Seconds after which an unresponsive connection counts as dead, so that a machine without power loses the leader's lock.
DEAD_AFTER_S = 20
WRITE_LOCK = 0x6E6575637772  # "neucwr"
LEADER_LOCK = 0x6E6575636C64  # "neucld"
# A command that looks whether anybody leads, or a child that has just been forked, holds the lock for a moment.
PATIENCE_S = 2.0
TRY_EVERY_S = 0.05
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
SINCE_BACKUP = (
    "The worker then reads from EvalAI the submissions that have no answer yet. An alert names those that were answered after the backup;"
    " `neuco-worker challenge retry` scores them again."
)


def make_engine(url: str) -> sa.Engine:
    """Make the engine for a server, ``postgresql+psycopg://…``.

    Raises:
        OrganizerError: If the URL is wrong, or the driver is not installed. The message never contains the URL, which may hold a password.
    """
    ours = {
        "keepalives_idle": DEAD_AFTER_S // 2,
        "keepalives_interval": DEAD_AFTER_S // 4,
        "keepalives_count": 2,
        "tcp_user_timeout": 1000 * DEAD_AFTER_S,
    }
    of_server = {
        "lock_timeout": f"{LOCK_WITHIN_S}s",
        "idle_in_transaction_session_timeout": "60s",
        **{f"tcp_{name}": value for name, value in ours.items() if name != "tcp_user_timeout"},
        "tcp_user_timeout": f"{DEAD_AFTER_S}s",
    }
    options = " ".join(f"-c {name}={value}" for name, value in of_server.items())
    try:
        address = sa.make_url(url)
        if "@" in f"{address.host}{address.database}":  # they begin in a password, which errors would show
            raise ValueError
        for host in (address.host or "").split(","):
            host.encode("idna")  # a name that cannot exist, such as db..local, is no error of the driver
        engine = sa.create_engine(
            address,
            pool_pre_ping=True,
            hide_parameters=True,
            # Regardless of the server's default: a transaction that waited for the write lock must see what was committed before.
            isolation_level="READ COMMITTED",
            connect_args={
                "connect_timeout": CONNECT_WITHIN_S,
                "application_name": "neuco-worker",
                "client_encoding": "utf8",
                "options": options,
                **ours,
            },
        )
    except ModuleNotFoundError as missing:
        raise OrganizerError(
            "The state is on PostgreSQL, but the driver psycopg is not installed.",
            hint='Install it: pip install "neuco-worker[postgres]".',
            code="state.driver",
        ) from missing
    except (ArgumentError, ValueError):  # the latter of a port that is no number, or such a name
        raise OrganizerError(
            "The value of `state` is not a database URL.",
            hint="Write postgresql+psycopg://USER@HOST/DATABASE. The password may be in ~/.pgpass; in the URL, @ in it is %40.",
            code="state.url",
        ) from None
    sa.event.listen(engine, "connect", _check_encoding)
    return engine


def _check_encoding(connection: psycopg.Connection, _: object) -> None:
    """Refuse a database that cannot hold every name of a team; one without an encoding stores bytes as they are."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", "SQL_ASCII"):
        raise OrganizerError(
            f"The database in `state` has the encoding {encoding}, which lacks characters that names at EvalAI may have.",
            hint="Make another one: CREATE DATABASE name ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0.",
            code="state.encoding",
        )


@contextmanager
def typed(file: Path | None) -> Iterator[None]:
    """Turn errors of the database's driver into ours; ``file`` is None for a server.

    Raises:
        StateFailed: If the database failed.
        InfrastructureError: If it refuses a statement or a value, which other statements do not suffer from.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:  # the driver's own, while a connection is being prepared
        cause = error.orig if isinstance(error, DBAPIError) else error
        if file is not None and getattr(cause, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
            raise damaged(file, str(cause)) from error
        # Others say nothing about values in their first line.
        shown = type(error).__name__ if isinstance(error, DataError) else str(cause).partition("\n")[0]
        refused = isinstance(error, DataError | IntegrityError | ProgrammingError)
        kind = InfrastructureError if refused else StateFailed
        raise kind(
            f"The state database{'' if file is None else f' {file}'} failed: {shown}.",
            hint="Check that the PostgreSQL server in `state` is running, that this machine can reach it, that the role owns the database,"
            " and what the server's log says."
            if file is None
            else "Check the disk space, the permissions, and that it is on a disk of this machine.",
            code="state.database",
        ) from error


def damaged(file: Path, reason: str) -> StateFailed:
    """Return the error for a database file that can no longer be trusted."""
    return StateFailed(
        f"The state database {file} is damaged ({reason}).",
        hint="Stop the worker and restore the last backup: `neuco-worker challenge restore ARCHIVE DIRECTORY`."
        f" {SINCE_BACKUP} Without a backup, `sqlite3 {shlex.quote(str(file))} .recover` saves what can still be read.",
        code="state.damaged",
    )


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
                f"The state cannot be written to: {problem.filename} ({problem.strerror}).",
                hint="Check the owner of this path and its file system, and run the command as the user who owns the state.",
                code="state.unwritable",
            ) from None
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as problem:
            os.close(handle)
            raise InfrastructureError(
                f"The file system of the state directory {self._path.parent} gives no locks ({problem.strerror}).",
                hint="Move the state to a disk of this machine, or to PostgreSQL.",
                code="state.no_locks",
            ) from None
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
                hint="Check that the database is running. When this worker is restarted, it waits until no other worker leads.",
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
        hint="Stop that worker first, or wait until it ends; `neuco-worker status` shows its machine and process.",
        code="state.locked",
    )
