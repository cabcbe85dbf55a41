"""Deliberate faults: what networks, proxies and an overloaded server do to a client."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from worker.sandbox.queue import QueueFaults


class Fault(StrEnum):
    """A kind of fault; "before" and "after" say whether the request took effect."""

    ERROR_BEFORE = "error_before"  # 500 with an HTML page, without any effect
    ERROR_AFTER = "error_after"  # 500 with an HTML page, after the effect
    RESET_BEFORE = "reset_before"  # the connection ends without an answer, without any effect
    RESET_AFTER = "reset_after"  # the connection ends without an answer, after the effect
    SLOW = "slow"  # the right answer, but late
    TRUNCATED = "truncated"  # the right answer, but truncated
    HTML = "html"  # 200 with an HTML page instead of JSON, after the effect
    STORM = "storm"  # 429 with Retry-After, for all users and for some time


MEDIA_FAULTS = (Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.SLOW, Fault.TRUNCATED)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """How often faults occur, and of which kinds.

    ``probability`` is per request, from 0 to 1; the kind is drawn uniformly from ``kinds``. Files have only some of the kinds.
    """

    probability: float = 0.0
    kinds: tuple[Fault, ...] = tuple(Fault)
    slow_s: float = 0.2
    storm_s: float = 1.0
    queue: QueueFaults = field(default_factory=QueueFaults)


class FaultSource:
    """Draws faults from a given generator; safe to use from several threads.

    ``plan`` may be replaced at any time: a test may switch faults off before it ends.
    """

    def __init__(self, plan: FaultPlan, rng: random.Random, monotonic: Callable[[], float]) -> None:
        self.plan = plan
        self._rng = rng
        self._monotonic = monotonic
        self._storm_until_s = float("-inf")
        self._forced: list[Fault] = []
        self._lock = threading.Lock()

    def force(self, *faults: Fault) -> None:
        """Give the next answers of the API exactly these faults."""
        with self._lock:
            self._forced.extend(faults)

    def draw(self, origin: str) -> Fault | None:
        """Return the fault for one request to ``origin``, which is ``api`` or ``media``; None for none."""
        with self._lock:
            if origin == "api" and self._forced:
                fault = self._forced.pop(0)
            elif origin == "api" and self._monotonic() < self._storm_until_s:
                return Fault.STORM
            else:
                kinds = [k for k in self.plan.kinds if origin == "api" or k in MEDIA_FAULTS]
                if not kinds or self.plan.probability <= 0 or self._rng.random() >= self.plan.probability:
                    return None
                fault = self._rng.choice(kinds)
            if fault is Fault.STORM:
                self._storm_until_s = self._monotonic() + self.plan.storm_s
            return fault
