"""The tables of the durable state: those whose rows are dataclasses, see :mod:`worker.state.rows`, and small ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import datetime
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy import (
    JSON,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from worker.state import rows
from worker.state.states import Outcome, State

TYPES: dict[type, sa.types.TypeEngine[Any]] = {
    bool: sa.Boolean(),
    int: Integer(),
    float: sa.Float(),
    str: Text(),
    datetime: rows.Instant(),
    **{kind: sa.Enum(kind, native_enum=False, length=16, values_callable=list) for kind in (Outcome, State)},
}
"""The column's type of each type of field that declares none."""


def table(name: str, metadata: MetaData, row: type, *items: sa.schema.SchemaItem) -> Table:
    """Make the table whose rows a dataclass describes: a column for each field, with its default and the options in its metadata.

    Args:
        name: Name of the table.
        metadata: Collects the tables.
        row: The dataclass. ``X | None`` may be NULL; the column's type follows from the field's type or its annotation.
        items: Indexes and constraints.
    """
    hints = get_type_hints(row, include_extras=True)
    return Table(name, metadata, *(_column(field, hints[field.name]) for field in fields(row)), *items)


def _column(field: Field[Any], hint: Any) -> Column[Any]:
    optional = NoneType in get_args(hint)
    kind = get_args(hint)[0] if optional else hint
    declared = getattr(kind, "__metadata__", None)
    default = {} if field.default is MISSING else {"default": field.default}
    return Column(
        field.name, declared[0] if declared else TYPES[kind], nullable=optional, **default, **field.metadata
    )


metadata = MetaData()

submissions = table(
    "submissions", metadata, rows.SubmissionRow, Index("submissions_teams", "team_key", "team")
)
attempts = table(
    "attempts", metadata, rows.AttemptRow, ForeignKeyConstraint(["submission"], ["submissions.pk"])
)
cells = table("cells", metadata, rows.CellRow)
phases = table("phases", metadata, rows.PhaseRow)
alerts = table("alerts", metadata, rows.Alert)
events = table("events", metadata, rows.Event, Index("events_latest", "kind", "subject"))

boards = Table(
    "boards",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("document", Text, nullable=False),
)

records = Table(
    "records",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("document", LargeBinary, nullable=False),  # compressed; contains hidden labels
)

facts = Table(
    "facts",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

commitments = Table(
    "commitments",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("public", JSON, nullable=False),
    Column("private", JSON, nullable=False),  # what opens it: nonces, salts, manifests
)

batches = Table(
    "batches",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("line", Text, nullable=False),
    Column("fillers", String(64)),  # key of the line's filler entries; NULL in lines without them
)

reveals = Table(
    "reveals",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("files", JSON, nullable=False),  # path to text
)

Row = TypeVar("Row")
AT_ONCE = 100  # rows
QUERIES = 64  # of one form, that differ in what they select
"""Building a query takes SQLAlchemy several times as long as executing it, so those of every step are built once."""


class Tables:
    """A connection inside a transaction; each part of :class:`worker.state.store.Transaction` adds the methods of its tables.

    Args:
        connection: The connection.
        reads_only: Whether nothing changes what the transaction sees, not even itself.
    """

    def __init__(self, connection: sa.Connection, *, reads_only: bool = False) -> None:
        self._connection = connection
        self._reads_only = reads_only
        self.moves: list[str] = []

    def _all(self, kind: type[Row], query: sa.Select[tuple[object, ...]], **parameters: Any) -> list[Row]:
        """Return the results of a query of a whole table as values."""
        return list(self._each(kind, query, parameters))

    def _each(
        self,
        kind: type[Row],
        query: sa.Select[tuple[object, ...]],
        parameters: Mapping[str, Any] | None = None,
        **options: int,
    ) -> Iterator[Row]:
        """Yield the results of a query of a whole table as values; with ``yield_per``, without holding them all in memory."""
        result = self._connection.execute(query, parameters, execution_options=options)
        names = tuple(result.keys())
        return (kind(**dict(zip(names, row, strict=True))) for row in result)

    def _put(self, table: Table, key: Mapping[str, object], **values: Any) -> None:
        """Change the row with a key, or add it."""
        changed = self._connection.execute(table.update().filter_by(**key).values(values))
        if changed.rowcount == 0:
            self._connection.execute(table.insert().values(**key, **values))
