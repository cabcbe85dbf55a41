"""Versions of the tables, and the migrations from each to the newest.

To change a table: change :mod:`worker.state.rows` or :mod:`worker.state.schema`, add ``versions/rNNNN_<noun>.py`` (alembic's ``op``, batch
mode for SQLite), append its number to :data:`REVISIONS`, and add a dump of the new version to ``tests/worker/state/versions``. The tests
compare a new database with a migrated one.

A start compares one stamped number and imports nothing; alembic is loaded only when there is something to migrate.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from scoring.errors import OrganizerError
from worker.state import schema

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
"""All versions, oldest first."""
HEAD = REVISIONS[-1]
# The same table as alembic makes.
_STAMP = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
# "neuco": two processes that start on one database server must not both make the tables
_ADVISORY_LOCK = 0x6E6575636F


def bring_up_to_date(engine: sa.Engine) -> None:
    """Make the tables of a new database, or migrate those of an older version.

    Everything happens in one transaction, so that after a crash the old version is intact. A SQLite database is copied to
    ``<name>.before-<version>`` before it is migrated.

    Raises:
        OrganizerError: If a newer version of this software wrote the database.
    """
    with engine.connect() as connection, connection.begin():
        found = _revision(connection)
    if found == HEAD:
        return
    if found is not None:
        _refuse_unknown(found)
    with _exclusive(engine) as connection:
        found = _revision(connection)  # another process may have been faster
        if found is None:
            schema.metadata.create_all(connection)
            _STAMP.create(connection)
            connection.execute(_STAMP.insert().values(version_num=HEAD))
        elif found != HEAD:
            _refuse_unknown(found)
            _keep_copy(engine)
            _migrate(connection, found)


def _revision(connection: sa.Connection) -> str | None:
    """Return the version of the tables, None if there are none.

    Tables without a stamp were made before stamps existed.
    """
    inspector = sa.inspect(connection)
    if inspector.has_table(_STAMP.name):
        stamped = connection.execute(sa.select(_STAMP.c.version_num)).scalar()
        return None if stamped is None else str(stamped)
    if not inspector.has_table(schema.submissions.name):
        return None
    return REVISIONS[1] if inspector.has_table(schema.commitments.name) else REVISIONS[0]


def _refuse_unknown(revision: str) -> None:
    if revision not in REVISIONS:
        raise OrganizerError(
            f"The state was written by a newer version of neuco-worker (database format {revision}; this version reads up to {HEAD}).",
            cure="Install that version again, or restore the backup that was made before the upgrade.",
            code="state.newer",
        )


def _keep_copy(engine: sa.Engine) -> None:
    """Copy a SQLite database before it is migrated; an existing copy is kept."""
    name = engine.url.database
    if engine.dialect.name != "sqlite" or not name:
        return
    path = Path(name)
    copy = path.with_name(f"{path.name}.before-{HEAD}")
    if copy.exists():
        return
    partial = copy.with_name(copy.name + ".part")
    partial.touch(mode=0o600)
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(partial)) as target,
    ):
        source.backup(target)
    partial.replace(copy)


@contextlib.contextmanager
def _exclusive(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that excludes all others.

    SQLite's foreign keys are off meanwhile, because a table is altered by copying it, and dropping the original would violate them.
    """
    with engine.connect().execution_options(neuco_write=True) as connection:
        lite = engine.dialect.name == "sqlite"
        driver = connection.connection.driver_connection
        if lite and driver is not None:
            driver.execute("PRAGMA foreign_keys=OFF")  # has no effect inside a transaction
        try:
            with connection.begin():
                if engine.dialect.name == "postgresql":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
                yield connection
        finally:
            if lite and driver is not None:
                driver.execute("PRAGMA foreign_keys=ON")


def _migrate(connection: sa.Connection, found: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if not sa.inspect(connection).has_table(_STAMP.name):
        _STAMP.create(connection)
        connection.execute(_STAMP.insert().values(version_num=found))
    command.upgrade(config, HEAD)


__all__ = ["bring_up_to_date"]
