"""The durable state: every fact that must survive a crash, and the only code that writes it.

Work happens in transactions. ``with store.write() as tx`` takes the write lock at once (BEGIN IMMEDIATE on SQLite, one advisory lock on
PostgreSQL), so a conditional update sees the present state, not an earlier reading.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError

from scoring.errors import InfrastructureError
from worker.state import servers
from worker.state.attempts import Attempts
from worker.state.attestations import Attestations
from worker.state.cells import Cells
from worker.state.cycles import Cycles
from worker.state.leadership import Leadership
from worker.state.migrations import bring_up_to_date
from worker.state.notices import Notices
from worker.state.outbox import Outbox
from worker.state.phases import Phases
from worker.state.submissions import Submissions

BUSY_TIMEOUT_S = 15
LOOK_MS = 250  # how often a write that waits for its lock checks whether the process is to end
PAUSE_S = 0.01  # between two tries at a lock, so that its holder can finish
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
SINCE_BACKUP = (
    "The worker then reads from EvalAI the submissions that have no answer yet. An alert names those that were answered after the backup;"
    " re-run them at EvalAI."
)


class Transaction(
    Submissions,
    Attempts,
    Cells,
    Outbox,
    Phases,
    Leadership,
    Cycles,
    Notices,
    Attestations,
):
    """All methods of the store, inside one transaction."""


class Store:
    """The database.

    Args:
        url: SQLAlchemy URL.
        checkpoint: Called with the name of every transition before and after it is committed; tests kill the process there.
        stopping: Set when the process is to end; then no write waits for a lock.

    Raises:
        InfrastructureError: If the database cannot be opened.
        OrganizerError: If it has another format, see :mod:`worker.state.migrations`.
    """

    def __init__(
        self,
        url: str,
        *,
        checkpoint: Callable[[str], None] = lambda _: None,
        stopping: threading.Event | None = None,
    ) -> None:
        prefix = "sqlite:///"
        if url.startswith(prefix):
            _make_private(Path(url.removeprefix(prefix)))
            self._file: Path | None = Path(url.removeprefix(prefix))
        else:
            self._file = None
        self._checkpoint = checkpoint
        self._stopping = stopping or threading.Event()
        self._reading: dict[str, Any] = {}
        if url.startswith("sqlite"):
            self._engine = sa.create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S})
            event.listen(self._engine, "connect", self._prepare_sqlite)
            event.listen(self._engine, "begin", self._begin_sqlite)
        else:
            self._engine = servers.make_engine(url)
            event.listen(self._engine, "begin", self._begin_server)
            self._reading = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._epoch: int | None = None
        try:
            with typed(self._file):
                bring_up_to_date(self._engine)
        except BaseException:
            self._engine.dispose()
            raise

    @property
    def stopping(self) -> bool:
        """Whether the process is to end: no act begins any more, and no write waits for a lock."""
        return self._stopping.is_set()

    @contextmanager
    def lead(self, now: datetime) -> Iterator[Transaction]:
        """Open the transaction in which this process, which holds the leader's lock, becomes the leader.

        From then on until :meth:`resign`, each of its writes first checks that no other process has become the leader.
        """
        with self.write() as tx:
            epoch = tx.begin_epoch(now)
            yield tx
        self._epoch = epoch

    def resign(self) -> None:
        """Write as a command does, without checking for another leader."""
        self._epoch = None

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that holds the write lock from its first moment and commits at the end.

        Raises:
            Deposed: If this process was the leader, and another one is now.
            InfrastructureError: If the database is locked, full or damaged.
        """
        with (
            typed(self._file),
            self._engine.connect().execution_options(neuco_write=True) as connection,
            connection.begin(),
        ):
            transaction = Transaction(connection)
            if self._epoch is not None:
                transaction.check_epoch(self._epoch)
            yield transaction
            for move in transaction.moves:
                self._checkpoint(f"before {move}")
        for move in transaction.moves:
            self._checkpoint(f"after {move}")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that sees one state of the database and changes nothing."""
        with (
            typed(self._file),
            self._engine.connect().execution_options(**self._reading) as connection,
            connection.begin(),
        ):
            yield Transaction(connection)

    def _begin_sqlite(self, connection: sa.Connection) -> None:
        """Begin a transaction; a write waits for the lock with short tries, because nothing can interrupt SQLite's own waiting."""
        if not connection.get_execution_options().get("neuco_write", False):
            connection.exec_driver_sql("BEGIN")
            return
        driver = connection.connection.driver_connection
        if driver is None:
            raise RuntimeError("a connection without a driver's")
        driver.execute(f"PRAGMA busy_timeout={LOOK_MS}")
        try:
            self._until(lambda: _executed(driver, "BEGIN IMMEDIATE"))
        finally:
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")

    def _prepare_sqlite(self, connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun explicitly
        # If several processes make a new database at the same moment, SQLite refuses this at once instead of waiting.
        self._until(lambda: _executed(connection, "PRAGMA journal_mode=WAL"))
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    def _begin_server(self, connection: sa.Connection) -> None:
        """Take the write lock with short tries, because a statement that waits on the server cannot be interrupted by a signal."""
        if connection.get_execution_options().get("neuco_write", False):
            lock = sa.select(sa.func.pg_try_advisory_xact_lock(servers.WRITE_LOCK))
            self._until(lambda: bool(connection.execute(lock).scalar()))

    def _until(self, taken: Callable[[], bool]) -> None:
        """Repeat a try at a lock of the database while another process holds it, and this process is not to end."""
        ends_s = time.monotonic() + BUSY_TIMEOUT_S
        while not taken():
            if self._stopping.wait(PAUSE_S) or time.monotonic() > ends_s:
                raise InfrastructureError(
                    "The state database is locked by another process.",
                    cure="The worker tries again. If this continues, find that process and end it.",
                    code="state.database",
                )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _executed(connection: sqlite3.Connection, statement: str) -> bool:
    """Execute a statement; return False if another connection holds the lock that it needs."""
    try:
        connection.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _make_private(path: Path) -> None:
    """Make the folder and the file of a new database readable only by their owner; SQLite gives the files next to it the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(OSError):  # SQLite's own message is clearer, and an existing file keeps its mode
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def typed(file: Path | None) -> Iterator[None]:
    """Turn errors of the database's driver into ours; ``file`` is None for a server."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:  # the driver's own, while a connection is being prepared
        cause = error.orig if isinstance(error, DBAPIError) else error
        # Only these say nothing about values.
        shown = str(cause) if isinstance(error, OperationalError | sqlite3.Error) else type(error).__name__
        raise failure(cause, file, shown) from error


def failure(cause: BaseException | None, file: Path | None, reason: str) -> InfrastructureError:
    """Return the error for a failure of the database.

    Args:
        cause: The driver's exception.
        file: The database's file; None for a server.
        reason: The part of the cause that may be shown.
    """
    if file is not None and getattr(cause, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
        return damaged(file, str(cause))
    name = "The state database" if file is None else f"The state database {file}"
    return InfrastructureError(
        f"{name} failed: {reason}.", cure="Check the disk space and the permissions.", code="state.database"
    )


def damaged(file: Path, reason: str) -> InfrastructureError:
    """Return the error for a database file that can no longer be trusted."""
    return InfrastructureError(
        f"The state database {file} is damaged ({reason}).",
        cure="Stop the worker and restore the last backup: `neuco-worker challenge restore ARCHIVE DIRECTORY`."
        f" {SINCE_BACKUP} Without a backup, `sqlite3 {file} .recover` saves what can still be read.",
        code="state.damaged",
    )
