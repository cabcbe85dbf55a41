"""Boards and the organizer's choices."""

from __future__ import annotations

import sqlalchemy as sa

from worker.state import schema
from worker.state.table import Tables


class Boards(Tables):
    """Methods for boards and choices."""

    def boards(self, phase: str, *, after: int = 0, at_most: int | None = None) -> list[str]:
        """Return the JSON documents of a phase's boards in sequence, beginning after number ``after``."""
        table = schema.boards
        query = sa.select(table.c.document).where(table.c.phase == phase, table.c.sequence > after)
        rows = self._connection.execute(query.order_by(table.c.sequence).limit(at_most))
        return [row[0] for row in rows]

    def last_board(self, phase: str) -> int:
        """Return the number of a phase's latest board, 0 if it has none."""
        table = schema.boards
        query = sa.select(sa.func.max(table.c.sequence)).where(table.c.phase == phase)
        return int(self._connection.execute(query).scalar() or 0)

    def add_board(self, phase: str, sequence: int, document: str) -> None:
        """Append a board to the history."""
        self._connection.execute(
            schema.boards.insert().values(phase=phase, sequence=sequence, document=document)
        )

    def replace_board(self, phase: str, sequence: int, document: str) -> None:
        """Replace a stored board with one without a name that was removed."""
        table = schema.boards
        place = (table.c.phase == phase) & (table.c.sequence == sequence)
        self._connection.execute(table.update().where(place).values(document=document))

    def choices(self, phase: str) -> dict[int, int]:
        """Return the organizer's choices: team key to submission."""
        query = sa.select(schema.choices).where(schema.choices.c.phase == phase)
        return {row.team_key: row.submission for row in self._connection.execute(query)}

    def choose(self, phase: str, team_key: int, submission: int) -> None:
        """Choose the submission that counts for a team, regardless of the rule."""
        table = schema.choices
        self._connection.execute(table.delete().where(table.c.phase == phase, table.c.team_key == team_key))
        self._connection.execute(table.insert().values(phase=phase, team_key=team_key, submission=submission))
