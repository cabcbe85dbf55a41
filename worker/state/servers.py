"""The state on a database server: PostgreSQL.

Two of the server's advisory locks are used. The lock of a transaction is the write lock, so that the store's methods work as on SQLite.
The lock of a session is the leader's, see :mod:`worker.state.lock`.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from scoring.errors import OrganizerError

CONNECT_WITHIN_S = 10
LOCK_WITHIN_S = 15  # for a lock of a row or a table
# Seconds after which an unresponsive connection counts as dead, so that a machine without power loses the leader's lock.
DEAD_AFTER_S = 20
WRITE_LOCK = 0x6E6575637772  # "neucwr"
LEADER_LOCK = 0x6E6575636C64  # "neucld"


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
