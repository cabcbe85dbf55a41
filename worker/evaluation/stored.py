"""Acts on a stored file that a command waits for: a child process reads the file within the limits of a submission."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from scoring.errors import InfrastructureError, NeucoError
from scoring.scorecard import Scorecard
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.act import child_limits
from worker.evaluation.evaluate_child import Order, Result, order_for
from worker.evaluation.matrix import save_card
from worker.runtime.child_acts import ChildAct, Died, Limits, OverLimit
from worker.state import Outcome, SubmissionRow, Transaction


class StoredFileAct(ChildAct[Result]):
    """Read a stored file again. Failures are not recorded: the caller raises the error and starts again.

    Args:
        configuration: Limits and engine.
        setup: The phase.
        file: The stored file.
        folder: The child's temporary folder.

    Attributes:
        error: What went wrong, if anything.
    """

    module = "worker.evaluation.evaluate_child"

    def __init__(self, configuration: Configuration, setup: PhaseSetup, file: Path, *, folder: Path) -> None:
        self._configuration = configuration
        self._setup = setup
        self._file = file
        self._folder = folder
        self.error: NeucoError | None = None

    @property
    def folder(self) -> Path:
        """The given folder."""
        return self._folder

    @property
    def limits(self) -> Limits:
        """The limits of a submission."""
        return child_limits(self._configuration)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Record nothing."""

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Keep the error for the caller."""
        self.error = error


class KeepContent(StoredFileAct):
    """Prepare a content for publication: write it in the form that is hashed, in parts.

    Args:
        configuration: Limits.
        setup: The phase.
        file: The stored file.
        content_hash: Hash of the content that was scored; another content is not kept.
        place: Destination of the folder with the parts, which appears whole or not at all.
        folder: The child's temporary folder.

    Attributes:
        parts: Name, bytes and SHA-256 of each part; empty if the file has another content now.
    """

    name = "keep"

    def __init__(
        self,
        configuration: Configuration,
        setup: PhaseSetup,
        file: Path,
        content_hash: str,
        *,
        place: Path,
        folder: Path,
    ) -> None:
        super().__init__(configuration, setup, file, folder=folder)
        self._content_hash = content_hash
        self._place = place
        self.parts: list[dict[str, Any]] = []

    def order(self) -> Order:
        """Return which file to read; nothing is scored."""
        order = order_for(
            self._setup,
            self._configuration,
            self._file,
            folder=self._folder,
            tasks=(),
            complete=(self._content_hash,),
        )
        return {**order, "keep": str(self._folder / "parts")}

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Move the parts to their destination, before the child's folder is removed."""
        if result["content_hash"] == self._content_hash:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._folder / "parts").rename(self._place)
            self.parts = result["parts"]


@dataclass(frozen=True, kw_only=True)
class IncompleteRow:
    """A content that lacks cells for some tasks.

    Attributes:
        content_hash: Hash of the embeddings.
        submissions: The submissions with this content.
        tasks: Tasks without a cell.
        files: The stored files with it; none if they no longer exist.
    """

    content_hash: str
    submissions: tuple[SubmissionRow, ...]
    tasks: tuple[str, ...]
    files: tuple[Path, ...]


class FillRow(StoredFileAct):
    """Score the missing cells of a content, for all submissions that have it.

    Args:
        configuration: Limits and engine.
        setup: The phase.
        row: The content, with the tasks to score and a stored file.
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
        *,
        folder: Path,
        worker: str,
        scored_at: datetime,
    ) -> None:
        super().__init__(configuration, setup, row.files[0], folder=folder)
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
