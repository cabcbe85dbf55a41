"""Acts: every effect outside the database is a class of its own that reads from top to bottom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from scoring.errors import NeucoError

if TYPE_CHECKING:  # a child process imports this package, and must not load a database
    from worker.state import Transaction

Resource = TypeVar("Resource")
Result = TypeVar("Result")


class NotDue(Exception):
    """Raised by an intent that finds in its transaction that the act is no longer needed; nothing is recorded then."""


class RecordedAct(ABC, Generic[Result]):
    """The database's part of an act: what is recorded before it and after it.

    While the act is under way, everything except what its intent recorded may change, so outcome and failure read their rows again.

    Attributes:
        name: Name for the log, the back-off and the points at which tests kill the process.
    """

    name: ClassVar[str]

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Record what is about to happen, so that the next start can tell if the process died during the act.

        Raises:
            NotDue: If the act is no longer needed.
        """

    @abstractmethod
    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Record what follows from success."""

    @abstractmethod
    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Record what follows from an error."""

    def recorded(self, result: Result, now: datetime) -> None:
        """Update objects in memory after a success, but only once its outcome is committed, because a transaction may fail."""

    def failure_recorded(self, error: NeucoError, now: datetime) -> None:
        """Update objects in memory after an error, once it is recorded."""


class Act(RecordedAct[Result], Generic[Resource, Result]):
    """One effect outside the database, performed by a thread.

    Attributes:
        what: Subject of a sentence about it, for people.
        time_out_s: Seconds after which it is given up; longer than the time-outs of the libraries.
    """

    what: ClassVar[str]
    time_out_s: float

    @abstractmethod
    def perform(self, resource: Resource) -> Result:
        """Perform the act in a thread of its own, without changing any of our state.

        Raises:
            NeucoError: If it fails.
        """

    def give_up(self, resource: Resource) -> None:
        """End an act that hangs, as far as another thread can; whatever it still does is ignored."""


class UnrecordedAct(Act[Resource, Result]):
    """An act that must work while the database cannot be written; nothing is recorded before or after it."""

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Never called."""

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Never called."""
