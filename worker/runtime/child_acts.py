"""Child acts: work that is done in a child process, because it may hang, crash, or take too many resources."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from scoring.errors import Cancelled, InfrastructureError, NeucoError, read_error
from worker.runtime import storage
from worker.runtime.acts import RecordedAct, Result
from worker.state import Outcome

if TYPE_CHECKING:  # a child process imports this package, and must not load a database
    from worker.state import Transaction


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a child.

    Attributes:
        deadline_s: Seconds from its start to its end.
        memory_bytes: Memory of the child and all processes that it starts; None for no limit.
    """

    deadline_s: float
    memory_bytes: int | None = None


class Progress(TypedDict, total=False):
    """The child's current stage, in its own words, and its memory there."""

    stage: str
    memory_bytes: int


class ChildAct(RecordedAct[Result]):
    """Work for a child process; order and result are JSON documents, and the result is the child's last message.

    Attributes:
        module: What the child runs, see :mod:`worker.runtime.child_main`.
        peak_memory_bytes: Peak memory of the child, set after its end.
    """

    module: ClassVar[str]
    peak_memory_bytes: int | None = None

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The child's temporary folder, which is removed when the outcome is recorded."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """The limits of the child, as configured now."""

    @abstractmethod
    def order(self) -> Mapping[str, object]:
        """Return what the child is to do; called after the intent."""

    def progress(self, message: Progress) -> None:
        """Note the child's progress."""

    def is_due(self, tx: Transaction) -> bool:
        """Return whether the work is still needed; if not, the child is killed."""
        return True


class OverLimit(InfrastructureError):
    """A child was killed because it exceeded a limit; the act decides what that means.

    Args:
        limit: The limit, :attr:`Outcome.DEADLINE` or :attr:`Outcome.MEMORY`.
    """

    def __init__(self, limit: Outcome) -> None:
        super().__init__(f"A process went over its limit ({limit}).")
        self.limit = limit


class Died(InfrastructureError):
    """A child ended without reporting a result or an error; the act decides what that means.

    Args:
        status: Its exit status, negative for a signal.
    """

    def __init__(self, status: int) -> None:
        reason = f"on signal {-status}" if status < 0 else f"with exit status {status}"
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
    """Return the error for a process that the machine could not start."""
    if storage.is_full(problem):
        return storage.full("there is no room for the folder of a submission's process")
    return InfrastructureError(
        f"A child process for a submission could not be started ({problem.strerror}).",
        cure="The worker tries again. If this continues, check the memory, disk space and number of processes of this machine.",
        code="child.start",
    )
