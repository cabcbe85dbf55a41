"""A new database has the tables of the code; one of another format is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from scoring.errors import OrganizerError
from worker.state import Store, migrations
from worker.state.schema import metadata


@pytest.fixture
def database(url: str) -> sa.Engine:
    """A database that a store has made, on SQLite or PostgreSQL."""
    Store(url).close()
    return sa.create_engine(url, poolclass=sa.NullPool)


def rows(database: sa.Engine, table: str) -> list[Any]:
    """Read a table."""
    with database.begin() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table}")]


def test_a_new_database_has_the_tables_of_the_code(database: sa.Engine) -> None:
    """Alembic finds no difference, and the database says that it has the newest revision."""
    with database.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert rows(database, "alembic_version") == [(migrations.HEAD,)]


def test_other_tables_have_another_revision() -> None:
    """Otherwise a database of an earlier version is taken for one of this version, until a statement fails."""
    columns = sorted(
        f"{column} {column.type} {column.nullable} {column.primary_key}"
        for table in metadata.tables.values()
        for column in table.columns
    )
    digest = hashlib.sha256("\n".join(columns).encode()).hexdigest()[:8]
    assert migrations.HEAD.endswith(f"_{digest}")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE alembic_version SET version_num = '9999'",
        "UPDATE alembic_version SET version_num = 'baseline'",
        "DROP TABLE alembic_version",
    ],
)
def test_a_database_of_another_format_is_refused_and_left_alone(
    url: str, database: sa.Engine, change: str
) -> None:
    """Software that does not know the tables does not change them, and says what to do."""
    with database.begin() as connection:
        connection.exec_driver_sql("INSERT INTO facts VALUES ('a', '1')")
        connection.exec_driver_sql(change)
    tables = sa.inspect(database).get_table_names()
    with pytest.raises(OrganizerError) as refused:
        Store(url)
    assert refused.value.code == "state.format"
    assert "Install the version" in refused.value.hint
    assert rows(database, "facts") == [("a", "1")]
    assert sa.inspect(database).get_table_names() == tables
