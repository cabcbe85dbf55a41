"""What the parts of a transaction share."""

from __future__ import annotations

import sqlalchemy as sa


class Tables:
    """A connection inside a transaction; each part of :class:`worker.state.store.Transaction` adds the verbs of its tables."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.moves: list[str] = []
