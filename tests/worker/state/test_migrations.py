"""Databases of every earlier version are migrated with all their rows; a newer one is refused."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

from scoring.errors import InfrastructureError, OrganizerError
from worker.state import State, Store, migrations

ROOT = Path(__file__).parents[3]
DUMPS = Path(__file__).parent / "versions"
SCRIPTS = ROOT / "worker" / "state" / "migrations"
DROPPED = {"attempts": {"lease_until", "fence"}}  # columns that nothing read


def restored(version: str, folder: Path) -> Path:
    """Make a database from the dump of a version."""
    path = folder / "worker.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((DUMPS / f"version-{version}.sql").read_text())
    return path


def url(path: Path) -> str:
    """Return SQLAlchemy's URL."""
    return f"sqlite:///{path}"


def opened(path: Path) -> None:
    """Open and close a store, which migrates."""
    Store(url(path)).close()


def rows(path: Path) -> dict[str, list[Any]]:
    """Read every table but the stamp."""
    with closing(sqlite3.connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr)
            for name in names
            if name != "alembic_version"
        }


def columns(path: Path) -> dict[str, list[str]]:
    """Read the names of every table's columns that today's version still has."""
    with closing(sqlite3.connect(path)) as database:
        return {
            name: [
                f'"{row[1]}"'
                for row in database.execute(f"PRAGMA table_info({name})")
                if row[1] not in DROPPED.get(name, ())
            ]
            for name in rows(path)
        }


def read_columns(path: Path, before: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Read some columns of every table."""
    with closing(sqlite3.connect(path)) as database:
        return {
            name: sorted(database.execute(f"SELECT {', '.join(named)} FROM {name}"), key=repr)
            for name, named in before.items()
        }


def shape(path: Path) -> dict[str, Any]:
    """Return columns, keys and indexes of every table, regardless of the statements that made them."""
    with closing(sqlite3.connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: (
                sorted(row[1:] for row in database.execute(f"PRAGMA table_info({name})")),
                sorted(row[2:] for row in database.execute(f"PRAGMA foreign_key_list({name})")),
                sorted(
                    (*row[2:], [column[2] for column in database.execute(f"PRAGMA index_info('{row[1]}')")])
                    for row in database.execute(f"PRAGMA index_list({name})")
                ),
            )
            for name in names
        }


def stamp(path: Path) -> list[str]:
    """Read the version that a database says it has."""
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT version_num FROM alembic_version")]


def test_the_list_of_versions_is_alembics_chain() -> None:
    """The start compares with a list in code, which must name exactly the scripts in order; each older version has its dump."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    chain = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(chain)) == migrations.REVISIONS
    assert {path.name for path in DUMPS.iterdir()} == {
        f"version-{version}.sql" for version in migrations.REVISIONS
    }


@pytest.mark.parametrize("version", migrations.REVISIONS)
def test_every_version_keeps_its_rows(version: str, tmp_path: Path) -> None:
    """After the migration every row is unchanged, except for dropped columns, and the store's methods can read it."""
    path = restored(version, tmp_path)
    named = columns(path)
    before = read_columns(path, named)
    opened(path)
    assert read_columns(path, named) == before
    assert stamp(path) == [migrations.HEAD]
    store = Store(url(path))
    with store.read() as tx:
        assert {known.state for known in tx.submissions()} == {State.PUBLISHED, State.FAILED}
        assert tx.alerts()
        assert tx.all_cells()
        assert {attempt.submission for attempt in tx.attempts()} == {1001, 1002, 1003}
        tx.commitments()
    store.close()


def test_migrated_and_new_databases_have_the_same_tables(tmp_path: Path) -> None:
    """All migrations together give the tables of a new database; a change without a migration fails here."""
    (tmp_path / "new").mkdir()
    new = tmp_path / "new" / "worker.db"
    opened(new)
    old = restored(migrations.REVISIONS[0], tmp_path)
    opened(old)
    assert shape(old) == shape(new)
    assert stamp(new) == [migrations.HEAD]


def test_the_first_migration_makes_the_first_version(tmp_path: Path) -> None:
    """The frozen scripts match the dumps: an empty database that runs through all of them has the tables of a new one."""
    path, new = tmp_path / "worker.db", tmp_path / "new.db"
    opened(new)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    engine = sa.create_engine(url(path))
    with engine.begin() as connection:
        migrations._migrate(connection, migrations.REVISIONS[0])
    engine.dispose()
    assert shape(path) == shape(new)


def test_a_copy_is_kept_before_a_migration(tmp_path: Path) -> None:
    """The old database is next to the migrated one, readable only by its owner; without a migration there is no copy."""
    path = restored(migrations.REVISIONS[0], tmp_path)
    before = rows(path)
    opened(path)
    (copy,) = tmp_path.glob("worker.db.before-*")
    assert rows(copy) == before
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    copy.unlink()
    opened(path)
    assert not list(tmp_path.glob("worker.db.before-*"))


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Software that does not know the tables does not change them, and says what to do."""
    path = restored(migrations.HEAD, tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    before = rows(path)
    with pytest.raises(OrganizerError) as refused:
        opened(path)
    assert refused.value.code == "state.newer"
    assert "Install that version" in refused.value.cure
    assert (rows(path), stamp(path)) == (before, ["9999"])
    assert not list(tmp_path.glob("worker.db.before-*"))


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    """All steps are one transaction: with an unexpected table in the way, the old version is unchanged, and the cause is reported."""
    path = restored(migrations.REVISIONS[0], tmp_path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE reveals (anything TEXT)")  # the last table that version 0002 makes
    before = shape(path)
    with pytest.raises(InfrastructureError, match="reveals"):
        opened(path)
    assert shape(path) == before


def test_two_starts_at_once_migrate_once(tmp_path: Path) -> None:
    """Commands that start at the same moment on an old database all find the newest tables."""
    path = restored(migrations.REVISIONS[0], tmp_path)
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            opened(path)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert stamp(path) == [migrations.HEAD]


def test_a_start_does_not_load_alembic(tmp_path: Path) -> None:
    """A new database and one of this version are opened without the library that migrates."""
    code = (
        "import sys; from worker.state import Store\n"
        f"for _ in range(2): Store({url(tmp_path / 'worker.db')!r}).close()\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('alembic', 'mako')))"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "[]"


def test_foreign_keys_are_kept_after_a_migration(tmp_path: Path) -> None:
    """They are off while tables are copied, and on again in the same store."""
    store = Store(url(restored(migrations.REVISIONS[0], tmp_path)))
    with (
        pytest.raises(InfrastructureError, match=re.compile("integrity", re.IGNORECASE)),
        store.write() as tx,
    ):
        tx._connection.exec_driver_sql(
            "INSERT INTO outbox (kind, submission, created_at, not_before, tries) VALUES ('post', 1, '', '', 0)"
        )
    store.close()
