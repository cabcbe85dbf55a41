"""Fill the missing cells of a row of the matrix: score a stored file on further tasks, for all submissions with its content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scoring.errors import InfrastructureError, NeucoError
from scoring.scorecard import Scorecard
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.evaluate_child import Order, Result, order_for
from worker.evaluation.matrix import save_card
from worker.evaluation.stored import StoredFileAct
from worker.runtime.child_acts import Died, OverLimit
from worker.state import Outcome, SubmissionRow, Transaction


@dataclass(frozen=True, kw_only=True)
class IncompleteRow:
    """A content that lacks cells for some tasks.

    Attributes:
        content_hash: Hash of the embeddings.
        submissions: The submissions with this content.
        tasks: Tasks without a cell.
        file_hash: The stored file; None if it no longer exists.
    """

    content_hash: str
    submissions: tuple[SubmissionRow, ...]
    tasks: tuple[str, ...]
    file_hash: str | None


class FillRow(StoredFileAct):
    """Score the missing cells of a content.

    Args:
        configuration: Limits and engine.
        setup: The phase.
        row: The content, with the tasks to score.
        file: A stored file with this content.
        folder: The child's temporary folder.
        worker: Name of the worker that scores, for the cells' provenance.
        scored_at: The time of the cells.
    """

    name = "rescore"

    def __init__(
        self,
        configuration: Configuration,
        setup: PhaseSetup,
        row: IncompleteRow,
        file: Path,
        *,
        folder: Path,
        worker: str,
        scored_at: datetime,
    ) -> None:
        super().__init__(configuration, setup, file, folder=folder)
        self._row = row
        self._worker = worker
        self._scored_at = scored_at

    def order(self) -> Order:
        """Return which file to score on which tasks."""
        tasks = self._row.tasks
        return order_for(self._setup, self._configuration, self._file, folder=self._folder, tasks=tasks)

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Store the cells."""
        if result["scorecard"] is not None:
            card = Scorecard.from_json(result["scorecard"])
            content_hash = self._row.content_hash
            save_card(tx, self._setup, content_hash, card, worker=self._worker, now=self._scored_at)

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Keep the error for the caller, with the cure for a rescore."""
        super().failure_recorded(error, now)
        if isinstance(error, OverLimit):
            self.error = RowOverLimit(self._row, error.limit)
        elif isinstance(error, Died):
            self.error = InfrastructureError(
                f"The rescoring process ended {error.reason}.",
                cure="Run the command again.",
                code="rescore.died",
            )


class RowOverLimit(InfrastructureError):
    """Rescoring a row took more than a submission may use.

    Args:
        row: The row.
        limit: The limit that was exceeded.
    """

    def __init__(self, row: IncompleteRow, limit: Outcome) -> None:
        much = (
            "longer than submission.deadline"
            if limit is Outcome.DEADLINE
            else "more memory than submission.memory_gigabytes"
        )
        super().__init__(
            f"Rescoring submission {row.submissions[0].pk} took {much}.",
            cure="Raise the limit, or disqualify the submission. Then run the command again. It continues where it stopped.",
            code="rescore.deadline" if limit is Outcome.DEADLINE else "rescore.memory",
        )
