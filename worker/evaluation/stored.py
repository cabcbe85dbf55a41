"""Acts on a stored file that a command waits for: a child process reads the file within the limits of a submission."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.act import child_limits
from worker.evaluation.evaluate_child import Result
from worker.runtime.child_acts import ChildAct, Limits
from worker.state import Transaction


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

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record nothing."""

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
