"""A check, what it can find, and the report of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class NotChecked(Exception):
    """Why something cannot be checked, as a sentence."""


class Level(StrEnum):
    """The severity of a finding, the mildest first."""

    OK = "ok"  # nothing is wrong
    SKIPPED = "skipped"  # not checked, for a stated reason
    WARN = "warn"  # the challenge would run, but the organizer should know
    FAIL = "fail"  # the challenge would not run, or would reveal something hidden


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst of some levels; ok if there are none."""
    return max(levels, key=list(Level).index, default=Level.OK)


@dataclass(frozen=True)
class Finding:
    """One sentence of a check, with a hint.

    Attributes:
        hint: What to do; if empty, the check's.
    """

    level: Level
    sentence: str
    hint: str = ""


fail = partial(Finding, Level.FAIL)
"""A finding that must be fixed before the launch."""
warn = partial(Finding, Level.WARN)
"""A finding that the organizer should know and may want to act on."""
note = partial(Finding, Level.OK)
"""A fact, with nothing wrong."""
skipped = partial(Finding, Level.SKIPPED)
"""Why nothing was checked."""


@dataclass(frozen=True)
class Check(Generic[T]):
    """One check of a subject.

    Attributes:
        id: Stable key, ``group.name``.
        question: What it answers; yes if nothing is wrong.
        ask: Yields what it finds. A :class:`scoring.errors.NeucoError` that it raises is a finding that must be fixed.
        hint: What to do about its findings, unless they say it themselves.
        remote: Whether it contacts another machine.
    """

    id: str
    question: str
    ask: Callable[[T], Iterable[Finding]]
    hint: str = ""
    remote: bool = False

    @property
    def group(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """The findings of a check."""

    check: Check[Any]
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The worst level of its findings; ok if there are none."""
        return worst(finding.level for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "id": self.check.id,
            "group": self.check.group,
            "question": self.check.question,
            "result": self.level.value,
            "findings": [asdict(finding) for finding in self.findings],
        }


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The outcomes of all checks, in their order."""

    outcomes: tuple[CheckOutcome, ...]

    def at(self, level: Level) -> list[CheckOutcome]:
        """Return the outcomes of one level."""
        return [outcome for outcome in self.outcomes if outcome.level is level]

    @property
    def level(self) -> Level:
        """The worst level of all checks except skipped ones."""
        return worst(outcome.level for outcome in self.outcomes if outcome.level is not Level.SKIPPED)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "result": self.level.value,
            "counts": {level.value: len(self.at(level)) for level in Level},
            "checks": [outcome.to_json() for outcome in self.outcomes],
        }
