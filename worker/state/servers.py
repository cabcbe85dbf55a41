"""The state on a database server: PostgreSQL.

Two of the server's advisory locks are used. The lock of a transaction is the write lock, so that the store's methods work as on SQLite.
The lock of a session is the leader's, see :mod:`worker.state.lock`.
"""

from __future__ import annotations

import threading
import time

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError

from scoring.errors import InfrastructureError, OrganizerError

CONNECT_WITHIN_S = 10
# Seconds after which an unresponsive connection counts as dead, so that a machine without power loses the leader's lock.
DEAD_AFTER_S = 20
TRY_EVERY_S = 0.02  # for the write lock
WRITE_LOCK = 0x6E6575637772  # "neucwr"
LEADER_LOCK = 0x6E6575636C64  # "neucld"


def make_engine(url: str, *, busy_timeout_s: float, stopping: threading.Event | None = None) -> sa.Engine:
    """Make the engine for a server.

    Args:
        url: ``postgresql+psycopg://…``
        busy_timeout_s: How long to wait for a lock, in seconds.
        stopping: Set when the process is to end; then nothing waits for the write lock.

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
        "lock_timeout": f"{busy_timeout_s:g}s",
        "idle_in_transaction_session_timeout": "60s",
        **{f"tcp_{name}": value for name, value in ours.items() if name != "tcp_user_timeout"},
        "tcp_user_timeout": f"{DEAD_AFTER_S}s",
    }
    options = " ".join(f"-c {name}={value}" for name, value in of_server.items())
    try:
        engine = sa.create_engine(
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

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("neuco_write", False):
            _take_write_lock(connection, busy_timeout_s, stopping or threading.Event())

    return engine


def _take_write_lock(connection: sa.Connection, busy_timeout_s: float, stopping: threading.Event) -> None:
    """Wait for the write lock with short tries, because a statement that waits on the server cannot be interrupted by a signal."""
    ends_s = time.monotonic() + busy_timeout_s
    while not connection.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({WRITE_LOCK})").scalar():
        if stopping.wait(TRY_EVERY_S) or time.monotonic() > ends_s:
            raise InfrastructureError(
                "The state database failed: another process holds its write lock.",
                cure="The worker tries again. If this continues, find that process in `pg_locks`.",
                code="state.database",
            )
