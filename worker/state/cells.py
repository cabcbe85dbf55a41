"""The score matrix: one cell per content, task, version and protocol, with the scores of its folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from scoring.scorecard import TaskScore
from worker.state.rows import CellRow
from worker.state.schema import Tables, cells


class Cells(Tables):
    """Methods for the score matrix."""

    def save_cells(
        self,
        content_hash: str,
        protocol_hash: str,
        phase: str,
        scores: Iterable[TaskScore],
        *,
        provenance: Mapping[str, Any],
        now: datetime,
    ) -> None:
        """Write score cells; existing ones stay, because equal keys mean equal scores up to the engines' tolerance."""
        stored = {(row.task, row.version) for row in self.cells(content_hash, protocol_hash)}
        for score in scores:
            if (score.task, score.version) in stored:
                continue
            self._connection.execute(
                cells.insert().values(
                    **vars(score),
                    content_hash=content_hash,
                    protocol_hash=protocol_hash,
                    phase=phase,
                    scored_at=now,
                    provenance=dict(provenance),
                )
            )

    def cells(self, content_hash: str, protocol_hash: str) -> list[CellRow]:
        """Return one row of the score matrix."""
        query = sa.select(cells).where(
            cells.c.content_hash == content_hash, cells.c.protocol_hash == protocol_hash
        )
        # Sorted here, because a database server may use the sort order of a language.
        return sorted(self._all(CellRow, query), key=lambda cell: cell.task)

    def row(self, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]) -> list[CellRow]:
        """Return the cells of a content for the given versions of tasks, in their order."""
        return [
            cell for cell in self.cells(content_hash, protocol_hash) if tasks.get(cell.task) == cell.version
        ]

    def missing_tasks(self, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]) -> list[str]:
        """Return those of the given tasks for which a content has no cell."""
        return sorted(tasks.keys() - {cell.task for cell in self.row(content_hash, protocol_hash, tasks)})

    def complete_rows(self, protocol_hash: str, tasks: Mapping[str, str]) -> list[str]:
        """Return the contents that have a cell for each of the given tasks."""
        columns = sa.tuple_(cells.c.task, cells.c.version)
        query = (
            sa.select(cells.c.content_hash)
            .where(cells.c.protocol_hash == protocol_hash, columns.in_(list(tasks.items())))
            .group_by(cells.c.content_hash)
            .having(sa.func.count() == len(tasks))
        )
        return list(self._connection.execute(query).scalars())

    def all_cells(self) -> list[CellRow]:
        """Return the whole score matrix, oldest cells first."""
        return self._all(CellRow, sa.select(cells).order_by(cells.c.scored_at))

    def has_cells(self, phase: str) -> bool:
        """Return whether anything of a phase was ever scored."""
        query = sa.select(sa.exists().where(cells.c.phase == phase))
        return bool(self._connection.execute(query).scalar())
