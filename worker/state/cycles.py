"""Publish cycles: each publishes everything that was decided before it began; generations tell a caller when its decision is public.

A decision raises the requested generation. The next cycle covers all generations requested before it began, and when its push has
ended, they are completed or have failed. A request that comes during a cycle is covered by the next one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from scoring.errors import NeucoError, error_document, read_error
from worker.state.notices import Notices

_REQUESTED = "publish_requested"
_AWAITED = "publish_awaited"
_COMPLETED = "publish_completed"
_FAILED = "publish_failed"


@dataclass(frozen=True, kw_only=True)
class Completed:
    """The last cycle that was pushed.

    Attributes:
        generation: All generations up to this one are in the repository.
        commit: The commit that contains them.
        changed: Whether the cycle changed anything in the repository.
    """

    generation: int = 0
    commit: str = ""
    changed: bool = False


class Cycles(Notices):
    """Methods for publish cycles."""

    def request_publish(self, *, awaited: bool = False) -> int:
        """Request a cycle that begins after this moment; return its generation.

        Args:
            awaited: Whether a caller waits for it, so that it begins at once.
        """
        generation = self.requested_publish() + 1
        self.set_fact(_REQUESTED, str(generation))
        if awaited:
            self.set_fact(_AWAITED, str(generation))
        return generation

    def requested_publish(self) -> int:
        """Return the last requested generation."""
        return int(self.fact(_REQUESTED) or 0)

    def completed_publish(self) -> Completed:
        """Return the last completed cycle."""
        stored = self.fact(_COMPLETED)
        return Completed() if stored is None else Completed(**json.loads(stored))

    def publish_awaited(self) -> bool:
        """Return whether a caller waits for a cycle that has neither been completed nor failed."""
        failed, _ = self._failed()
        ended = max(self.completed_publish().generation, failed)
        return int(self.fact(_AWAITED) or 0) > ended

    def complete_publish(self, completed: Completed) -> None:
        """Record that a cycle has been pushed."""
        self.set_fact(_COMPLETED, json.dumps(asdict(completed)))
        self.set_fact(_FAILED, None)

    def fail_publish(self, generation: int, error: NeucoError) -> None:
        """Record why a cycle could not be pushed; it will be repeated."""
        self.set_fact(_FAILED, json.dumps({"generation": generation, "error": error_document(error)}))

    def publish_failure(self, generation: int) -> NeucoError | None:
        """Return why the cycle of a generation, or of a later one, could not be pushed; None if none has failed."""
        failed, error = self._failed()
        return None if failed < generation else error

    def _failed(self) -> tuple[int, NeucoError | None]:
        """Return the generation of the last failed cycle and its error; 0 and None if there is none."""
        stored = self.fact(_FAILED)
        if stored is None:
            return 0, None
        document = json.loads(stored)
        return int(document["generation"]), read_error(document["error"])
