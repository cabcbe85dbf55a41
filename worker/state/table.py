"""The base of the parts of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import sqlalchemy as sa

Row = TypeVar("Row")
AT_ONCE = 100  # rows


class Tables:
    """A connection inside a transaction; each part of :class:`worker.state.store.Transaction` adds the methods of its tables."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.moves: list[str] = []

    def _all(self, kind: type[Row], query: sa.Select[tuple[object, ...]]) -> list[Row]:
        """Return the results of a query of a whole table as values."""
        return list(self._values(kind, self._connection.execute(query)))

    def _each(self, kind: type[Row], query: sa.Select[tuple[object, ...]]) -> Iterator[Row]:
        """Yield the results of a query of a whole table without holding them all in memory."""
        return self._values(kind, self._connection.execute(query.execution_options(yield_per=AT_ONCE)))

    def _values(self, kind: type[Row], result: sa.CursorResult[tuple[object, ...]]) -> Iterator[Row]:
        names = tuple(result.keys())
        return (kind(**dict(zip(names, row, strict=True))) for row in result)
