"""The state on a database server: PostgreSQL.

Two of the server's advisory locks are used. The lock of a transaction is the write lock, so that the store's methods work as on SQLite.
The lock of a session is the leader's, see :mod:`worker.state.lock`.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError

from scoring.errors import OrganizerError

LEAST_VERSION = 15
CONNECT_WITHIN_S = 10
# Seconds after which an unresponsive connection counts as dead, so that a machine without power loses the leader's lock.
DEAD_AFTER_S = 20
LOOK_S = 0.02  # between two tries to take the write lock
WRITE_LOCK = 0x6E6575637772  # "neucwr"
LEADER_LOCK = 0x6E6575636C64  # "neucld"
READING: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
"""Execution options of a transaction that sees one state of the database and changes nothing."""


def make_engine(url: str, *, busy_timeout_s: float, stopping: threading.Event | None = None) -> sa.Engine:
    """Make the engine for a server.

    Args:
        url: ``postgresql+psycopg://…``
        busy_timeout_s: How long to wait for a lock, in seconds.
        stopping: Set when the process is to end; then nothing waits for the write lock.

    Raises:
        OrganizerError: If the URL is wrong, or the driver is not installed. The message never contains the URL, which may hold a password.
    """
    alive = {
        "keepalives_idle": DEAD_AFTER_S // 2,
        "keepalives_interval": DEAD_AFTER_S // 4,
        "keepalives_count": 2,
        "tcp_user_timeout": 1000 * DEAD_AFTER_S,
    }
    try:
        engine = sa.create_engine(
            url,
            pool_pre_ping=True,
            hide_parameters=True,
            # Regardless of the server's default: a transaction that waited for the write lock must see what was committed before.
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": CONNECT_WITHIN_S, "application_name": "neuco-worker", **alive},
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
    event.listen(engine, "connect", partial(_prepare, busy_timeout_s))
    event.listen(engine, "begin", partial(_begin, busy_timeout_s, stopping or threading.Event()))
    return engine


def _prepare(busy_timeout_s: float, connection: Any, _: object) -> None:
    """Set up a new connection."""
    settings = {
        "lock_timeout": f"{busy_timeout_s:g}s",
        "idle_in_transaction_session_timeout": "60s",
        "tcp_keepalives_idle": str(DEAD_AFTER_S // 2),
        "tcp_keepalives_interval": str(DEAD_AFTER_S // 4),
        "tcp_keepalives_count": "2",
        "tcp_user_timeout": f"{DEAD_AFTER_S}s",
        "timezone": "UTC",
    }
    connection.autocommit = True
    with connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
    connection.autocommit = False


def _begin(busy_timeout_s: float, stopping: threading.Event, connection: sa.Connection) -> None:
    if connection.get_execution_options().get("neuco_write", False):
        _take_write_lock(connection, busy_timeout_s, stopping)


def _take_write_lock(connection: sa.Connection, busy_timeout_s: float, stopping: threading.Event) -> None:
    """Wait for the write lock with short tries, because a statement that waits on the server cannot be interrupted by a signal."""
    ends_s = time.monotonic() + busy_timeout_s
    while not connection.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({WRITE_LOCK})").scalar():
        if stopping.wait(LOOK_S) or time.monotonic() > ends_s:
            # At last, let the server refuse it with its own message.
            connection.exec_driver_sql("SET LOCAL lock_timeout = 1")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
            return


def check_version(engine: sa.Engine) -> None:
    """Refuse a server that is too old.

    Raises:
        OrganizerError: If it is.
    """
    with engine.connect():
        major = int((engine.dialect.server_version_info or (0,))[0])
    if major < LEAST_VERSION:
        raise OrganizerError(
            f"The state's server runs PostgreSQL {major}; {LEAST_VERSION} or newer is needed.",
            cure="Upgrade it.",
            code="state.server_old",
        )
