"""Versions of the tables: alembic makes those of a new database, and later migrates those of an older version.

To change a table after a release: change :mod:`worker.state.rows` or :mod:`worker.state.schema`, add a module to ``versions`` (alembic's
``op``, in batch mode for SQLite), and write its revision into :data:`HEAD`.

A start compares one stamped text and imports nothing; alembic is loaded only when there is something to make or to migrate.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from scoring.errors import OrganizerError
from worker.state import schema

HEAD = "tables_c178db83"
"""The newest revision; until the first release, it ends with the beginning of a hash of the tables."""
_STAMP = sa.table("alembic_version", sa.column("version_num"))


def bring_up_to_date(engine: sa.Engine, *, make: bool = True) -> bool:
    """Make the tables of a new database, or migrate those of an older version, in one transaction; return whether there are tables.

    Args:
        engine: The database.
        make: Whether tables are made if there are none.

    Raises:
        OrganizerError: If the database has a format that this version does not know.
    """
    with engine.connect() as connection, connection.begin():
        revision = _revision(connection)
        if revision is None and not make and not sa.inspect(connection).has_table(schema.submissions.name):
            return False
        if revision == HEAD:
            return True
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    with engine.connect().execution_options(neuco_write=True) as connection, connection.begin():
        revision = _revision(connection)  # another process may have been faster
        if revision is None and sa.inspect(connection).has_table(schema.submissions.name):
            raise _unknown("no version")
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:  # no module of `versions` has this revision
            raise _unknown(f"version {revision}") from error
    return True


def _revision(connection: sa.Connection) -> str | None:
    """Return the revision of the tables, None if there are none."""
    if not sa.inspect(connection).has_table(_STAMP.name):
        return None
    stamped: str | None = connection.execute(sa.select(_STAMP.c.version_num)).scalar()
    return stamped


def _unknown(format_: str) -> OrganizerError:
    return OrganizerError(
        f"This version of neuco-worker cannot read the state database: its tables have {format_}, not {HEAD}.",
        hint="Install the version of neuco-worker that wrote it, or restore a backup that was made with this version.",
        code="state.format",
    )


__all__ = ["bring_up_to_date"]
