"""Acts on a stored file that a command waits for: a child process reads the file within the limits of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.act import child_limits, save_card
from worker.evaluation.evaluate_child import EvaluationOrder, EvaluationResult, order_for
from worker.runtime.child_acts import ChildAct, Limits
from worker.state import Transaction


@dataclass(kw_only=True, eq=False, repr=False)
class StoredFileAct(ChildAct[EvaluationResult]):
    """Read a stored file again. Failures are not recorded: the caller raises the error and starts again.

    Attributes:
        configuration: Limits and engine.
        setup: The phase.
        file: The stored file.
        folder: The child's temporary folder.
        error: What went wrong, if anything.
    """

    module = "worker.evaluation.evaluate_child"
    configuration: Configuration
    setup: PhaseSetup
    file: Path
    folder: Path
    error: NeucoError | None = field(init=False, default=None)

    @property
    def limits(self) -> Limits:
        """The limits of a submission."""
        return child_limits(self.configuration)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Keep the error for the caller, and record nothing."""
        self.error = error


@dataclass(kw_only=True, eq=False, repr=False)
class KeepContent(StoredFileAct):
    """Prepare a content for publication: write it in the form that is hashed, in parts.

    Attributes:
        content_hash: Hash of the content that was scored; another content is not kept.
        place: Destination of the folder with the parts, which appears whole, or not at all if the file has another content now.
    """

    name = "keep"
    content_hash: str
    place: Path

    def order(self) -> EvaluationOrder:
        """Return which file to read; nothing is scored."""
        order = order_for(self.setup, self.configuration, self.file, folder=self.folder, tasks=())
        return {**order, "keep": str(self.folder / "parts")}

    def outcome(self, tx: Transaction, result: EvaluationResult, now: datetime) -> None:
        """Move the parts to their destination, before the child's folder is removed."""
        if result["content_hash"] == self.content_hash:
            self.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.place.is_dir():  # else another command was quicker, and a worker may read its parts
                (self.folder / "parts").rename(self.place)


@dataclass(kw_only=True, eq=False, repr=False)
class FillRow(StoredFileAct):
    """Score the missing cells of a content, for all submissions that have it.

    Attributes:
        tasks: Tasks without a cell.
    """

    name = "rescore"
    tasks: Sequence[str]

    def order(self) -> EvaluationOrder:
        """Return which file to score on which tasks."""
        return order_for(self.setup, self.configuration, self.file, folder=self.folder, tasks=self.tasks)

    def outcome(self, tx: Transaction, result: EvaluationResult, now: datetime) -> None:
        """Store the cells."""
        save_card(tx, self.setup, result)
