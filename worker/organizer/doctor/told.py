"""What EvalAI says of the challenge, its phases and leaderboards, and the settings that are compared with it.

A value is read in one way, which has no default. So what EvalAI does not say is reported as unknown, and never counts as good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
        return self.read(key, lambda value: value if isinstance(value, bool) else None)

    def moments(self, key: str) -> list[Any]:
        """Return a date, alone in a list, which is empty if EvalAI says that there is none."""
        return self.read(key, lambda value: [] if value is None else ([m] if (m := moment(value)) else None))

    def texts(self, key: str) -> list[Any]:
        """Return a list, which is empty if EvalAI says that there is none."""
        return self.read(key, lambda value: value or [] if isinstance(value, list | None) else None)


@dataclass(frozen=True)
class Setting:
    """A switch at EvalAI that can be wrong.

    Attributes:
        key: EvalAI's name of it.
        bad: The wrong value.
        sentence: What follows, a format whose argument is the thing.
        hint: What to do.
        level: How bad it is.
    """

    key: str
    bad: bool
    sentence: str
    hint: str
    level: Level = Level.WARN

    def compare(self, thing: Told) -> Iterator[Finding]:
        """Yield a finding if the switch is wrong."""
        if thing.flag(self.key) is self.bad:
            yield Finding(self.level, self.sentence.format(thing), self.hint)


def each(comparisons: Iterable[Iterator[Finding]]) -> Iterator[Finding]:
    """Yield what comparisons find; what one cannot read does not end the others."""
    for comparison in comparisons:
        try:
            yield from comparison
        except NotChecked as unknown:
            yield skipped(str(unknown))
