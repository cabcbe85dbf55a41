"""A verdict: what one check found, what that is worth, and a sentence that a lay person understands.

Only a contradiction speaks against the organizers. What is believed, or was not revealed, is never taken for checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Worth(StrEnum):
    """What a check's result is worth."""

    RECOMPUTED = "recomputed"  # computed again from a submission's file
    CONSISTENT = "consistent"  # follows from what was published and committed to
    BELIEVED = "believed"  # nothing that is published could contradict it
    NOT_REVEALED = "not revealed"  # may be checked once more is published
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One check's result.

    Attributes:
        phase: Codename of the phase that it speaks of; None for the whole challenge.
        check: Which check it was.
        worth: What its result is worth.
        sentence: The result in words. It may quote what others wrote: the caller that prints it must make it printable.
        submissions: Those whose scores were computed again.
    """

    phase: str | None = None
    check: str
    worth: Worth
    sentence: str
    submissions: tuple[int, ...] = ()


def consistent(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Say that something follows from what was published."""
    return Verdict(phase=phase, check=check, worth=Worth.CONSISTENT, sentence=sentence)


def contradicted(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Say that what was published contradicts itself, or a witness."""
    return Verdict(phase=phase, check=check, worth=Worth.CONTRADICTED, sentence=sentence)


def believed(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Say that something can only be believed."""
    return Verdict(phase=phase, check=check, worth=Worth.BELIEVED, sentence=sentence)


def not_revealed(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Say that something cannot be told before more is published."""
    return Verdict(phase=phase, check=check, worth=Worth.NOT_REVEALED, sentence=sentence)


def name_some(names: Sequence[str], most: int = 5) -> str:
    """Name the first of some files in a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
