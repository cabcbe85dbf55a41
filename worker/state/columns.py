"""Column types, and the table that a dataclass of rows describes.

Times are aware UTC, stored as ISO 8601 text with microseconds, so that they sort and read the same in every database.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from enum import StrEnum
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import sqlalchemy as sa

from scoring.scorecard import folds_from_json, folds_to_json

if TYPE_CHECKING:
    from sqlalchemy.sql.schema import SchemaItem


class Instant(sa.TypeDecorator[datetime]):
    """An aware UTC time as fixed-width ISO text."""

    impl = sa.String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:
        """Refuse a naive time, which would silently depend on the machine's time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:
        """Read it back as aware UTC."""
        return None if value is None else datetime.fromisoformat(value)


class FoldScores(sa.TypeDecorator[tuple[float, ...]]):
    """Scores of folds as a JSON list; a failed fold is ``null``."""

    impl = sa.Text()
    cache_ok = True

    def process_bind_param(self, value: tuple[float, ...] | None, dialect: sa.Dialect) -> str:
        """Write the scores."""
        return json.dumps(folds_to_json(value or ()))

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> tuple[float, ...]:
        """Read the scores."""
        return folds_from_json(json.loads(value))


Hash = Annotated[str, sa.String(64)]
Code = Annotated[str, sa.String(64)]
Name = Annotated[str, sa.String(100)]

_TYPES: dict[type, sa.types.TypeEngine[Any]] = {
    bool: sa.Boolean(),
    int: sa.Integer(),
    float: sa.Float(),
    str: sa.Text(),
    datetime: Instant(),
}


def table(name: str, metadata: sa.MetaData, row: type, *items: SchemaItem) -> sa.Table:
    """Make the table whose rows a dataclass describes: a column for each field, with its default and the options in its metadata.

    Args:
        name: Name of the table.
        metadata: Collects the tables.
        row: The dataclass. ``X | None`` may be NULL; the column's type follows from the field's type or its annotation.
        items: Indexes and constraints.
    """
    hints = get_type_hints(row, include_extras=True)
    return sa.Table(name, metadata, *(_column(field, hints[field.name]) for field in fields(row)), *items)


def _column(field: Field[Any], hint: Any) -> sa.Column[Any]:
    optional = NoneType in get_args(hint)
    kind = get_args(hint)[0] if optional else hint
    default = {} if field.default is MISSING else {"default": field.default}
    return sa.Column(field.name, _type(kind), nullable=optional, **default, **field.metadata)


def _type(kind: Any) -> sa.types.TypeEngine[Any]:
    if annotated := getattr(kind, "__metadata__", ()):
        declared: sa.types.TypeEngine[Any] = annotated[0]
        return declared
    if issubclass(kind, StrEnum):
        return sa.Enum(kind, native_enum=False, length=16, values_callable=list)
    return _TYPES[kind]
