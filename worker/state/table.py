"""What the parts of a transaction share."""

from __future__ import annotations

from typing import TypeVar

import sqlalchemy as sa

Row = TypeVar("Row")


class Tables:
    """A connection inside a transaction; each part of :class:`worker.state.store.Transaction` adds the verbs of its tables."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.moves: list[str] = []

    def _all(self, kind: type[Row], query: sa.Select[tuple[object, ...]]) -> list[Row]:
        """Return what a query of a whole table finds, as values."""
        found = self._connection.execute(query)
        names = tuple(found.keys())
        return [kind(**dict(zip(names, row, strict=True))) for row in found]
