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
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import event

from worker.state.database import WRITE_LOCK, make_engine, typed
from worker.state.leadership import Leadership, StateFailed
from worker.state.migrations import bring_up_to_date
from worker.state.pauses import Pauses
from worker.state.phases import Attestations, Phases
from worker.state.publish_cycles import PublishCycles
from worker.state.submissions import Submissions
from worker.state.work import Cells, Work

BUSY_TIMEOUT_S = 15
LOOK_S = 1  # how long a try at SQLite's lock takes, which nothing can interrupt
PAUSE_S = 0.01  # between two tries at a lock, so that its holder can finish


class Transaction(Submissions, Work, Cells, Phases, Pauses, Leadership, PublishCycles, Attestations):
    """All methods of the store, inside one transaction."""


class Store:
    """The database.

    Args:
        url: SQLAlchemy URL.
        checkpoint: Called with the name of every transition before and after it is committed; tests kill the process there.
        stopping: Set when the process is to end; then no write waits for a lock.
        make: Whether its tables are made if there are none.

    Attributes:
        has_tables: Whether it has tables.

    Raises:
        StateFailed: If the database cannot be opened.
        OrganizerError: If it has another format, see :mod:`worker.state.migrations`.
    """

    def __init__(
        self,
        url: str,
        *,
        checkpoint: Callable[[str], None] = lambda _: None,
        stopping: threading.Event | None = None,
        make: bool = True,
    ) -> None:
        self._checkpoint = checkpoint
        self._stopping = stopping or threading.Event()
        self._reading: dict[str, Any] = {}
        self._file: Path | None = None
        if url.startswith("sqlite"):
            self._file = Path(url.removeprefix("sqlite:///"))
            _make_private(self._file)
            place = sa.URL.create("sqlite", database=str(self._file))  # a path may have ? and %
            self._engine = sa.create_engine(place, connect_args={"timeout": LOOK_S})
            event.listen(self._engine, "connect", self._prepare_sqlite)
            event.listen(self._engine, "begin", self._begin_sqlite)
        else:
            self._engine = make_engine(url)
            event.listen(self._engine, "begin", self._begin_server)
            self._reading = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._epoch: int | None = None
        try:
            with typed(self._file):
                self.has_tables = bring_up_to_date(self._engine, make=make)
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

    def check_lead(self) -> None:
        """Check what each write checks, in any thread.

        Raises:
            Deposed: As :meth:`write`.
            StateFailed: If the database cannot be read.
        """
        with self.read() as tx:
            tx.check_epoch(self._epoch)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that holds the write lock from its first moment and commits at the end.

        Raises:
            Deposed: If this process was the leader, and another one is now.
            StateFailed: If the database is locked, full or damaged.
        """
        with (
            typed(self._file),
            self._engine.connect().execution_options(neuco_write=True) as connection,
            connection.begin(),
        ):
            transaction = Transaction(connection)
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
            yield Transaction(connection, reads_only=True)

    def _begin_sqlite(self, connection: sa.Connection) -> None:
        """Begin a transaction; a write takes its lock at once."""
        if connection.get_execution_options().get("neuco_write", False):
            driver = cast("sqlite3.Connection", connection.connection.driver_connection)
            self._until(lambda: _executed(driver, "BEGIN IMMEDIATE"))
        else:
            connection.exec_driver_sql("BEGIN")

    def _prepare_sqlite(self, connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun explicitly
        # If several processes make a new database at the same moment, SQLite refuses this at once instead of waiting.
        self._until(lambda: _executed(connection, "PRAGMA journal_mode=WAL"))
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    def _begin_server(self, connection: sa.Connection) -> None:
        """Take the write lock with short tries, because a statement that waits on the server cannot be interrupted by a signal."""
        if connection.get_execution_options().get("neuco_write", False):
            lock = sa.select(sa.func.pg_try_advisory_xact_lock(WRITE_LOCK))
            self._until(lambda: bool(connection.execute(lock).scalar()))

    def _until(self, taken: Callable[[], bool]) -> None:
        """Repeat a try at a lock of the database while another process holds it, and this process is not to end."""
        ends_s = time.monotonic() + BUSY_TIMEOUT_S
        while not taken():
            if self._stopping.wait(PAUSE_S) or time.monotonic() > ends_s:
                raise StateFailed(
                    "The state database is locked by another process.",
                    hint="The worker tries again. If this continues, find that process and end it.",
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
