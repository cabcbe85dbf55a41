"""The database as SQLAlchemy's engine sees it: an engine for PostgreSQL, and the errors of both drivers as ours.

Two of a server's advisory locks are used. The lock of a transaction is the write lock, so that the store's methods work as on SQLite. The
lock of a session is the leader's, see :mod:`worker.state.lock`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from scoring.errors import InfrastructureError, OrganizerError

CONNECT_WITHIN_S = 10
LOCK_WITHIN_S = 15  # for a lock of a row or a table
# Seconds after which an unresponsive connection counts as dead, so that a machine without power loses the leader's lock.
DEAD_AFTER_S = 20
WRITE_LOCK = 0x6E6575637772  # "neucwr"
LEADER_LOCK = 0x6E6575636C64  # "neucld"
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
SINCE_BACKUP = (
    "The worker then reads from EvalAI the submissions that have no answer yet. An alert names those that were answered after the backup;"
    " re-run them at EvalAI."
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
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            hide_parameters=True,
            # Regardless of the server's default: a transaction that waited for the write lock must see what was committed before.
            isolation_level="READ COMMITTED",
            connect_args={
                "connect_timeout": CONNECT_WITHIN_S,
                "application_name": "neuco-worker",
                "options": options,
                **ours,
            },
        )
    except ModuleNotFoundError as missing:
        raise OrganizerError(
            "The state is on PostgreSQL, but the driver psycopg is not installed.",
            cure="Install it with `pip install neuco-worker[postgres]`.",
            code="state.driver",
        ) from missing
    except ArgumentError:
        raise OrganizerError(
            "The value of `state` is not a database URL.",
            cure="Write postgresql+psycopg://USER@HOST/DATABASE. The password may be in ~/.pgpass.",
            code="state.url",
        ) from None


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
