"""Acts on a stored file that a command waits for: a child process reads the file within the limits of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.act import child_limits, save_card
from worker.evaluation.evaluate_child import EvaluationOrder, EvaluationResult, order_for
from worker.runtime.child_acts import ChildAct, Limits
from worker.state import Transaction


class StoredFileAct(ChildAct[EvaluationResult]):
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
        parts: Name of each part; empty if the file has another content now.
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
        self.parts: list[str] = []

    def order(self) -> EvaluationOrder:
        """Return which file to read; nothing is scored."""
        order = order_for(self._setup, self._configuration, self._file, folder=self._folder, tasks=())
        return {**order, "keep": str(self._folder / "parts")}

    def outcome(self, tx: Transaction, result: EvaluationResult, now: datetime) -> None:
        """Move the parts to their destination, before the child's folder is removed."""
        if result["content_hash"] == self._content_hash:
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self._place.is_dir():  # else another command was quicker, and a worker may read its parts
                (self._folder / "parts").rename(self._place)
            self.parts = result["parts"]


class FillRow(StoredFileAct):
    """Score the missing cells of a content, for all submissions that have it.

    Args:
        configuration: Limits and engine.
        setup: The phase.
        file: A stored file with the content.
        content_hash: The content's hash.
        tasks: Tasks without a cell.
        folder: The child's temporary folder.
    """

    name = "rescore"

    def __init__(
        self,
        configuration: Configuration,
        setup: PhaseSetup,
        file: Path,
        content_hash: str,
        tasks: Sequence[str],
        *,
        folder: Path,
    ) -> None:
        super().__init__(configuration, setup, file, folder=folder)
        self._content_hash = content_hash
        self._tasks = tasks

    def order(self) -> EvaluationOrder:
        """Return which file to score on which tasks."""
        return order_for(self._setup, self._configuration, self._file, folder=self._folder, tasks=self._tasks)

    def outcome(self, tx: Transaction, result: EvaluationResult, now: datetime) -> None:
        """Store the cells."""
        save_card(tx, self._setup, result)
