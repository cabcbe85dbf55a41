"""Publish cycles: each publishes everything that was decided before it began.

A decision raises the requested generation. The next cycle covers all generations requested before it began, and when its push has ended,
they are completed or have failed. A request that comes during a cycle is covered by the next one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from scoring.errors import NeucoError, error_document, read_error
from worker.state.facts import Facts

_CYCLES = "publish_cycles"


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


class PublishCycles(Facts):
    """Methods for publish cycles."""

    def request_publish(self, *, awaited: bool = False) -> int:
        """Request a cycle that begins after this moment; return its generation.

        Args:
            awaited: Whether a caller waits for it, so that it begins at once.
        """
        generation = self.requested_publish() + 1
        self._note_cycle(requested=generation, **({"awaited": generation} if awaited else {}))
        return generation

    def requested_publish(self) -> int:
        """Return the last requested generation."""
        return int(self.document(_CYCLES).get("requested", 0))

    def completed_publish(self) -> Completed:
        """Return the last completed cycle."""
        return Completed(**self.document(_CYCLES).get("completed", {}))

    def publish_awaited(self) -> bool:
        """Return whether a caller waits for a cycle that has neither been completed nor failed."""
        cycles = self.document(_CYCLES)
        ended = max(self.completed_publish().generation, cycles.get("failed", 0))
        return bool(cycles.get("awaited", 0) > ended)

    def complete_publish(self, completed: Completed) -> None:
        """Record that a cycle has been pushed."""
        self._note_cycle(completed=asdict(completed), failed=0)

    def fail_publish(self, generation: int, error: NeucoError) -> None:
        """Record why a cycle could not be pushed; it will be repeated."""
        self._note_cycle(failed=generation, error=error_document(error))

    def publish_failure(self, generation: int) -> NeucoError | None:
        """Return why the cycle of a generation, or of a later one, could not be pushed; None if none has failed."""
        cycles = self.document(_CYCLES)
        return None if cycles.get("failed", 0) < generation else read_error(cycles["error"])

    def _note_cycle(self, **values: Any) -> None:
        self.set_fact(_CYCLES, json.dumps({**self.document(_CYCLES), **values}))
