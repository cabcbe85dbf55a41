"""What a check is, and what it can say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.organizer.doctor.examination import Examination

Ask = Callable[["Examination"], "Iterable[Finding]"]


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"  #: as it should be
    SKIPPED = "skipped"  #: not looked at, for a reason that is told
    WARN = "warn"  #: the challenge would run; the organizer should know
    FAIL = "fail"  #: the challenge would not run, or would give something away


_ORDER = (Level.OK, Level.SKIPPED, Level.WARN, Level.FAIL)


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst of some levels; ok without any."""
    return max(levels, key=_ORDER.index, default=Level.OK)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence of a check, with what to do about it."""

    level: Level
    sentence: str
    cure: str = ""


def fail(sentence: str, cure: str) -> Finding:
    """Say what has to be fixed before the launch."""
    return Finding(level=Level.FAIL, sentence=sentence, cure=cure)


def warn(sentence: str, cure: str) -> Finding:
    """Say what the organizer should know and may want to change."""
    return Finding(level=Level.WARN, sentence=sentence, cure=cure)


def note(sentence: str) -> Finding:
    """Say a fact; nothing is wrong."""
    return Finding(level=Level.OK, sentence=sentence)


def skipped(sentence: str) -> Finding:
    """Say why there was nothing to look at."""
    return Finding(level=Level.SKIPPED, sentence=sentence)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that is looked at.

    Attributes:
        id: Stable key, ``group.name``.
        title: What is true when all is well.
        ask: Looks, and yields what it found; a :class:`scoring.errors.NeucoError` that it lets pass counts as a failure.
        needs: Checks that must not have failed; else this one is skipped.
        remote: Whether it talks to another machine.
    """

    id: str
    title: str
    ask: Ask
    needs: tuple[str, ...]
    remote: bool

    @property
    def group(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


def check(
    identifier: str, title: str, *, needs: tuple[str, ...] = ("configuration.file",), remote: bool = False
) -> Callable[[Ask], Check]:
    """Turn a function into a check."""

    def make(ask: Ask) -> Check:
        return Check(id=identifier, title=title, ask=ask, needs=needs, remote=remote)

    return make


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a check found."""

    check: Check
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The worst of its findings; ok without any."""
        return worst(finding.level for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "id": self.check.id,
            "group": self.check.group,
            "title": self.check.title,
            "result": self.level.value,
            "findings": [
                {"level": finding.level.value, "sentence": finding.sentence, "cure": finding.cure}
                for finding in self.findings
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """What all checks found, in their order."""

    outcomes: tuple[Outcome, ...]

    def at(self, level: Level) -> list[Outcome]:
        """Return the outcomes of one level."""
        return [outcome for outcome in self.outcomes if outcome.level is level]

    @property
    def level(self) -> Level:
        """The worst that was found, skipped checks aside."""
        for level in (Level.FAIL, Level.WARN):
            if self.at(level):
                return level
        return Level.OK

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "result": self.level.value,
            "counts": {level.value: len(self.at(level)) for level in Level},
            "checks": [outcome.to_json() for outcome in self.outcomes],
        }
