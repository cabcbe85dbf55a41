"""What is done for submissions: attempts, and the score matrix.

The matrix has one cell per content, task, version and protocol, with the scores of its folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa

from scoring.scorecard import TaskScore, folds_to_json
from worker.state.rows import AttemptRow, CellRow, Instant
from worker.state.schema import Tables, attempts, cells, submissions
from worker.state.states import Outcome

_OPEN_ATTEMPTS = sa.select(attempts).where(attempts.c.closed_at.is_(None))
_LAST_TURNS = (
    sa.select(submissions.c.team_key, sa.func.max(attempts.c.opened_at, type_=Instant()))
    .join(submissions, submissions.c.pk == attempts.c.submission)
    .where(submissions.c.team_key.is_not(None))
    .group_by(submissions.c.team_key)
)
_HAS_CELLS = sa.select(sa.exists().where(cells.c.phase == sa.bindparam("phase")))


class Work(Tables):
    """Methods for attempts."""

    def open_attempt(self, pk: int, *, now: datetime) -> int:
        """Open an attempt and return its id."""
        result = self._connection.execute(attempts.insert().values(submission=pk, opened_at=now))
        return int(cast("tuple[int]", result.inserted_primary_key)[0])

    def close_attempt(self, attempt: int, outcome: Outcome, *, now: datetime) -> None:
        """Close an attempt with its outcome."""
        self._connection.execute(
            attempts.update().where(attempts.c.id == attempt).values(closed_at=now, outcome=outcome)
        )

    def end_attempts(self, outcome: Outcome, *, now: datetime) -> None:
        """Close all attempts that are still open, because the process that made them has ended."""
        self._connection.execute(
            attempts.update().where(attempts.c.closed_at.is_(None)).values(closed_at=now, outcome=outcome)
        )

    def open_attempts(self) -> set[int]:
        """Return the submissions with an open attempt."""
        return {row.submission for row in self._all(AttemptRow, _OPEN_ATTEMPTS)}

    def attempts(self, *, pk: int | None = None) -> list[AttemptRow]:
        """Return all attempts, or those at a submission, oldest first."""
        return self._all(
            AttemptRow,
            sa.select(attempts)
            .where(attempts.c.submission == pk if pk is not None else sa.true())
            .order_by(attempts.c.id),
        )

    def last_turns(self) -> dict[int, datetime]:
        """Return for each team when an evaluation of one of its submissions last began."""
        return {row[0]: row[1] for row in self._connection.execute(_LAST_TURNS)}


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
    ) -> None:
        """Write score cells; existing ones stay, because equal keys mean equal scores up to the engines' tolerance."""
        stored = {(row.task, row.version) for row in self.cells(content_hash, protocol_hash)}
        new = [
            {
                "task": score.task,
                "version": score.version,
                "row_set": score.row_set,
                "test_parts": list(score.test_parts),
                "folds": folds_to_json(score.folds),
                "q": score.q,
                "content_hash": content_hash,
                "protocol_hash": protocol_hash,
                "phase": phase,
                "provenance": dict(provenance),
            }
            for score in scores
            if (score.task, score.version) not in stored
        ]
        if new:
            self._connection.execute(cells.insert(), new)

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

    def has_cells(self, phase: str) -> bool:
        """Return whether anything of a phase was ever scored."""
        return bool(self._connection.execute(_HAS_CELLS, {"phase": phase}).scalar())
