"""Child acts: what is done in a process of its own, because it may hang, crash, or take too much."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from scoring.errors import Cancelled, InfrastructureError, NeucoError, read_error
from worker.runtime import disk
from worker.runtime.acts import RecordedAct, Result
from worker.state import Outcome

if TYPE_CHECKING:  # a child imports this package, and must not load a database
    from worker.state import Transaction


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a child may use.

    Attributes:
        deadline_s: Seconds from its start to its end.
        memory_bytes: Of it and whatever it starts; None for any.
    """

    deadline_s: float
    memory_bytes: int | None = None


class Progress(TypedDict, total=False):
    """How far a child is, in its own words, and how much memory it had there."""

    stage: str
    memory_bytes: int


class ChildAct(RecordedAct[Result]):
    """One thing that a child does; order and result are JSON documents, the result is the last message of the child.

    Attributes:
        module: What the child runs, see :mod:`worker.runtime.child_main`.
        peak_memory_bytes: The most memory that the child had, when it is over.
    """

    module: ClassVar[str]
    peak_memory_bytes: int | None = None

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The child's temporary folder; it is removed when what came of it is recorded."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """What the child may use, as configured now."""

    @abstractmethod
    def order(self) -> Mapping[str, object]:
        """Say what the child is to do; asked for after the intent."""

    def progress(self, message: Progress) -> None:
        """Take note of how far the child is."""

    def is_due(self, tx: Transaction) -> bool:
        """Return whether it is still to be done; the child is killed if not."""
        return True


class OverLimit(InfrastructureError):
    """A child was killed because it used more than it may; the act says what that means.

    Args:
        limit: Which limit, :attr:`Outcome.DEADLINE` or :attr:`Outcome.MEMORY`.
    """

    def __init__(self, limit: Outcome) -> None:
        super().__init__(f"A process went over its limit ({limit}).")
        self.limit = limit


class Died(InfrastructureError):
    """A child ended without saying how; the act says what that means.

    Args:
        status: Its exit status, negative for a signal.
    """

    def __init__(self, status: int) -> None:
        reason = f"by signal {-status}" if status < 0 else f"with exit status {status}"
        super().__init__(f"A process ended {reason}.")
        self.status = status
        self.reason = reason


class Stopped(Cancelled):
    """The worker ends, and its children with it."""

    def __init__(self) -> None:
        super().__init__("The worker was stopped.")


def decode_error(message: Mapping[str, Any]) -> NeucoError:
    """Turn the error that a child reported into one of ours."""
    return OverLimit(Outcome.MEMORY) if message.get("family") == "memory" else read_error(message)


def no_child(problem: OSError) -> InfrastructureError:
    """Say that the machine gave us no process."""
    if disk.is_full(problem):
        return disk.full("there is no room for the folder of a submission's process")
    return InfrastructureError(
        f"A child process for a submission could not be started ({problem.strerror}).",
        cure="The worker tries again. If this continues, check the memory, disk space and number of processes of this machine.",
        code="child.start",
    )
