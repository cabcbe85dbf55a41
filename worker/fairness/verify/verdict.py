"""A verdict: what one check found, its worth, and a sentence for people without technical knowledge.

Only a contradiction counts against the organizers. What somebody else has changed does not, but is not consistent either. What must be
trusted, or was not revealed, never counts as checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Worth(StrEnum):
    """The worth of a check's result."""

    RECOMPUTED = "recomputed"  # recomputed from a submission's file
    CONSISTENT = "consistent"  # follows from what was published and committed to
    BELIEVED = "believed"  # nothing that is published could contradict it, so it must be trusted
    NOT_REVEALED = "not revealed"  # can be checked once more is published
    CHANGED = "changed"  # by somebody else than the challenge
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of one check.

    Attributes:
        phase: Codename of the phase that it is about; None for the whole challenge.
        check: Name of the check.
        worth: The worth of its result.
        sentence: The result in words. It may quote untrusted text: the caller that prints it must make it printable.
        submissions: The submissions whose scores were recomputed.
    """

    phase: str | None = None
    check: str
    worth: Worth
    sentence: str
    submissions: tuple[int, ...] = ()


def consistent(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Return the verdict that something follows from what was published."""
    return Verdict(phase=phase, check=check, worth=Worth.CONSISTENT, sentence=sentence)


def contradicted(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Return the verdict that what was published contradicts itself, or a witness."""
    return Verdict(phase=phase, check=check, worth=Worth.CONTRADICTED, sentence=sentence)


def changed(check: str, sentence: str) -> Verdict:
    """Return the verdict that somebody else has changed what visitors see."""
    return Verdict(check=check, worth=Worth.CHANGED, sentence=sentence)


def believed(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Return the verdict that something must be trusted."""
    return Verdict(phase=phase, check=check, worth=Worth.BELIEVED, sentence=sentence)


def not_revealed(check: str, sentence: str, *, phase: str | None = None) -> Verdict:
    """Return the verdict that something cannot be checked before more is published."""
    return Verdict(phase=phase, check=check, worth=Worth.NOT_REVEALED, sentence=sentence)
