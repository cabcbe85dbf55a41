"""Answers spoilt on purpose: what networks, proxies and a tired server do to a client."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from worker.sandbox.queue import QueueFaults


class Fault(StrEnum):
    """One way of spoiling an answer; "before" and "after" say whether the request took effect."""

    ERROR_BEFORE = "error_before"  #: 500 with an HTML page, nothing happened
    ERROR_AFTER = "error_after"  #: 500 with an HTML page, but the effect remains
    RESET_BEFORE = "reset_before"  #: the connection ends without an answer, nothing happened
    RESET_AFTER = "reset_after"  #: the connection ends without an answer, but the effect remains
    SLOW = "slow"  #: the right answer, late
    TRUNCATED = "truncated"  #: the right answer, cut in half
    HTML = "html"  #: 200 with an HTML page instead of JSON, and the effect remains
    STORM = "storm"  #: 429 with Retry-After, for everybody and for a while


MEDIA_FAULTS = (Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.SLOW, Fault.TRUNCATED)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """How often and how an answer is spoilt.

    ``probability`` is per request, from 0 to 1; the kind is drawn evenly from ``kinds``. Files know only some kinds.
    """

    probability: float = 0.0
    kinds: tuple[Fault, ...] = tuple(Fault)
    slow_s: float = 0.2
    storm_s: float = 1.0
    queue: QueueFaults = field(default_factory=QueueFaults)


class FaultSource:
    """Draws faults from a generator that is handed in; safe to use from several threads.

    ``plan`` may be replaced at any time: a test switches faults off for its last act.
    """

    def __init__(self, plan: FaultPlan, rng: random.Random, monotonic: Callable[[], float]) -> None:
        self.plan = plan
        self._rng = rng
        self._monotonic = monotonic
        self._storm_until_s = float("-inf")
        self._forced: list[Fault] = []
        self._lock = threading.Lock()

    def force(self, *faults: Fault) -> None:
        """Spoil the next answers of the API in exactly these ways."""
        with self._lock:
            self._forced.extend(faults)

    def draw(self, origin: str) -> Fault | None:
        """Decide about one request of ``origin``, which is ``api`` or ``media``."""
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
