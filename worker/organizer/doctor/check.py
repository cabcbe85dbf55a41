"""A check and its possible results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from worker.organizer.doctor.cost import Cost
    from worker.organizer.doctor.examination import Examination

T = TypeVar("T")
Ask = Callable[["Examination"], "Iterable[Finding]"]
Things = Callable[["Examination"], Iterable[T]]


class NotChecked(Exception):
    """Why something cannot be checked, as a sentence."""


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"  # nothing is wrong
    SKIPPED = "skipped"  # not checked, for a stated reason
    WARN = "warn"  # the challenge would run, but the organizer should know
    FAIL = "fail"  # the challenge would not run, or would reveal something hidden


_ORDER = (Level.OK, Level.SKIPPED, Level.WARN, Level.FAIL)


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst of some levels; ok if there are none."""
    return max(levels, key=_ORDER.index, default=Level.OK)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence of a check, with a cure.

    Attributes:
        always: Whether it is shown even if nothing is wrong.
    """

    level: Level
    sentence: str
    cure: str = ""
    always: bool = False


def fail(sentence: str, cure: str) -> Finding:
    """Return a finding that must be fixed before the launch."""
    return Finding(level=Level.FAIL, sentence=sentence, cure=cure)


def warn(sentence: str, cure: str) -> Finding:
    """Return a finding that the organizer should know and may want to act on."""
    return Finding(level=Level.WARN, sentence=sentence, cure=cure)


def note(sentence: str, *, always: bool = False) -> Finding:
    """Return a fact, with nothing wrong; ``always`` shows it to every organizer."""
    return Finding(level=Level.OK, sentence=sentence, always=always)


def skipped(sentence: str) -> Finding:
    """Return why nothing was checked."""
    return Finding(level=Level.SKIPPED, sentence=sentence)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        id: Stable key, ``group.name``.
        title: What is true if nothing is wrong.
        ask: Yields what it found. A :class:`scoring.errors.NeucoError` that it raises counts as a failure, unless an earlier check has
            raised it already: then this one is skipped.
        remote: Whether it contacts another machine.
    """

    id: str
    title: str
    ask: Ask
    remote: bool

    @property
    def group(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Flag(Generic[T]):
    """A row of a table: a check that compares one value of a thing with what is expected.

    Attributes:
        id: As :attr:`Check.id`.
        title: As :attr:`Check.title`.
        wrong: Returns whether a thing has another value.
        say: Makes the finding in that case, :func:`fail` or :func:`warn`.
        sentence: The finding's sentence, a format whose argument is the thing.
        cure: What to do.
    """

    id: str
    title: str
    wrong: Callable[[T], bool]
    say: Callable[[str, str], Finding]
    sentence: str
    cure: str

    def ask(self, things: Things[T], exam: Examination) -> Iterator[Finding]:
        """Compare all things; yield a finding for each that is wrong."""
        return (self.say(self.sentence.format(one), self.cure) for one in things(exam) if self.wrong(one))


class Checks(list[Check]):
    """The checks of a module, in the order in which they run."""

    def add(self, identifier: str, title: str, *, remote: bool = False) -> Callable[[Ask], Ask]:
        """Return a decorator that adds a function as a check."""

        def take(ask: Ask) -> Ask:
            self.append(Check(id=identifier, title=title, ask=ask, remote=remote))
            return ask

        return take

    def add_flags(self, things: Things[T], flags: Iterable[Flag[T]], *, remote: bool) -> None:
        """Add a table of checks that compare the same things."""
        for flag in flags:
            self.add(flag.id, flag.title, remote=remote)(partial(flag.ask, things))


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """The findings of a check."""

    check: Check
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
            "title": self.check.title,
            "result": self.level.value,
            "findings": [
                {"level": finding.level.value, "sentence": finding.sentence, "cure": finding.cure}
                for finding in self.findings
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcomes of all checks, in their order, and the cost of a submission to each phase, where it was measured."""

    outcomes: tuple[CheckOutcome, ...]
    costs: Mapping[str, Cost]

    def at(self, level: Level) -> list[CheckOutcome]:
        """Return the outcomes of one level."""
        return [outcome for outcome in self.outcomes if outcome.level is level]

    @property
    def level(self) -> Level:
        """The worst level of all checks except skipped ones."""
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
            "costs": {codename: asdict(cost) for codename, cost in self.costs.items()},
        }
