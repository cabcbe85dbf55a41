"""Acts: everything that reaches outside, each a class that reads from top to bottom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from scoring.errors import NeucoError

if TYPE_CHECKING:  # a child imports this package, and must not load a database
    from worker.state import Transaction

Resource = TypeVar("Resource")
Result = TypeVar("Result")


class NotDue(Exception):
    """Raised by an intent that finds, in its transaction, that the act is not to be done any more; nothing is recorded then."""


class RecordedAct(ABC, Generic[Result]):
    """An act as the database sees it: what is recorded before it, and after it.

    While the act is under way anything may change but what its intent recorded, so outcome and failure read their rows again.

    Attributes:
        name: For the log, the back-off and the points at which tests kill the process.
    """

    name: ClassVar[str]

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record what is about to happen, so that a death in the middle of it is understood.

        Raises:
            NotDue: If it is not to be done any more.
        """

    @abstractmethod
    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Record what follows from success."""

    @abstractmethod
    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Record what follows from an error."""

    def recorded(self, result: Result, now: datetime) -> None:
        """Take note of success in memory, once its outcome is recorded and not before: a transaction may fail."""

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Take note of an error in memory, once it is recorded."""


class Act(RecordedAct[Result], Generic[Resource, Result]):
    """One thing that a thread does outside the database.

    Attributes:
        what: The subject of a sentence about it, for people.
        time_out_s: After so long it is given up; libraries have time-outs of their own, and this one is longer.
    """

    what: ClassVar[str]
    time_out_s: float

    @abstractmethod
    def perform(self, resource: Resource) -> Result:
        """Do it: in a thread of its own, without changing any state of ours.

        Raises:
            NeucoError: If it fails.
        """

    def give_up(self, resource: Resource) -> None:
        """End what hangs, as far as that can be done from another thread; what is performed later all the same counts for nothing."""


class UnrecordedAct(Act[Resource, Result]):
    """An act that must be possible while the database cannot be written: nothing is recorded before or after it."""

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Never called."""

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Never called."""
