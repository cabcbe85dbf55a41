"""What EvalAI says of the challenge, its phases and leaderboards, and the settings that are compared with it.

A value is read in one way, which has no default. So what EvalAI does not say is reported as unknown, and never counts as good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from worker.evalai.records import moment
from worker.organizer.doctor.check import Finding, Level, NotChecked, skipped

T = TypeVar("T")


@dataclass(frozen=True)
class Told:
    """What EvalAI says of one thing.

    Attributes:
        name: The thing in a sentence, such as "phase dev".
        said: The fields of EvalAI's answers about it.
    """

    name: str
    said: Mapping[str, Any]

    def read(self, key: str, reader: Callable[[Any], T | None]) -> T:
        """Return a value.

        Args:
            key: EvalAI's name of the field.
            reader: Returns the value, None if it is of another kind.

        Raises:
            NotChecked: If the field is missing, or is of another kind.
        """
        value = reader(self.said[key]) if key in self.said else None
        if value is None:
            raise NotChecked(f"EvalAI does not say {key} of {self.name}.")
        return value

    def flag(self, key: str) -> bool:
        """Return whether something is set."""
        return self.read(key, flag)

    def moment(self, key: str) -> datetime:
        """Return a date; EvalAI itself fails on one that is null."""
        return self.read(key, moment)


def flag(value: Any) -> bool | None:
    """Return a switch; None if it is none."""
    return value if isinstance(value, bool) else None


def filled(value: Any) -> bool | None:
    """Return whether a list, for which EvalAI may send null, has entries; None if it is none."""
    return bool(value) if isinstance(value, list | None) else None


@dataclass(frozen=True)
class Setting:
    """A switch or a list at EvalAI that can be wrong.

    Attributes:
        key: EvalAI's name of it.
        bad: The wrong value; of a list, whether it has entries.
        sentence: What follows, a format whose argument is the thing.
        hint: What to do.
        level: How bad it is.
        reader: Returns the value, None if it is of another kind.
    """

    key: str
    bad: bool
    sentence: str
    hint: str
    level: Level = Level.WARN
    reader: Callable[[Any], bool | None] = flag

    def compare(self, thing: Told) -> Iterator[Finding]:
        """Yield a finding if the value is wrong."""
        if thing.read(self.key, self.reader) is self.bad:
            yield Finding(self.level, self.sentence.format(thing), self.hint)


def each(comparisons: Iterable[Iterator[Finding]]) -> Iterator[Finding]:
    """Yield what comparisons find; what one cannot read does not end the others, and is named once."""
    unknown: dict[str, None] = {}
    for comparison in comparisons:
        try:
            yield from comparison
        except NotChecked as reason:
            unknown[str(reason)] = None
    yield from map(skipped, unknown)
