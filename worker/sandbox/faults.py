"""Deliberate faults: what networks, proxies, queues and an overloaded server do to a client."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """A kind of fault; "before" and "after" say whether the request took effect."""

    ERROR_BEFORE = "error_before"  # 500 with an HTML page, without any effect
    ERROR_AFTER = "error_after"  # 500 with an HTML page, after the effect
    RESET_BEFORE = "reset_before"  # the connection ends without an answer, without any effect
    RESET_AFTER = "reset_after"  # the connection ends without an answer, after the effect
    SLOW = "slow"  # the right answer, but late
    TRUNCATED = "truncated"  # the right answer, but truncated
    HTML = "html"  # 200 with an HTML page instead of JSON, after the effect
    STORM = "storm"  # 429 with Retry-After, for all users


MEDIA_FAULTS = (Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.SLOW, Fault.TRUNCATED)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """How often faults occur, and of which kinds; all probabilities are from 0 to 1.

    ``probability`` is per request to one of ``origins``; the kind is drawn uniformly from ``kinds``. Files have only some of the kinds. The
    last three are what SQS does not rule out: a delivered message also stays visible, any visible message is delivered instead of the
    oldest, and nothing is delivered although a message waits.
    """

    probability: float = 0.0
    kinds: tuple[Fault, ...] = tuple(Fault)
    origins: tuple[str, ...] = ("api", "media")
    slow_s: float = 0.2
    storm_s: float = 1.0
    duplicate: float = 0.0
    reorder: float = 0.0
    empty: float = 0.0


class FaultSource:
    """Draws faults from a given generator. ``plan`` may be replaced at any time."""

    def __init__(self, rng: random.Random) -> None:
        self.plan = FaultPlan()
        self.rng = rng
        self._forced: list[Fault | None] = []

    def force(self, *faults: Fault | None) -> None:
        """Give the next answers of the API exactly these faults; None is a good answer."""
        self._forced.extend(faults)

    def strikes(self, probability: float) -> bool:
        """Return whether a fault with this probability occurs now."""
        return probability > 0 and self.rng.random() < probability

    def draw(self, origin: str) -> Fault | None:
        """Return the fault for one request to ``origin``, which is ``api`` or ``media``; None for none."""
        if origin == "api" and self._forced:
            return self._forced.pop(0)
        kinds = [kind for kind in self.plan.kinds if origin == "api" or kind in MEDIA_FAULTS]
        if origin not in self.plan.origins or not kinds or not self.strikes(self.plan.probability):
            return None
        return self.rng.choice(kinds)
