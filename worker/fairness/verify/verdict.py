"""A verdict: what one check found, in a sentence that a lay person understands.

It is true, false, or "cannot be checked", which is never taken for true.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Truth(StrEnum):
    """What a check found."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "cannot be checked"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One check's result, in a sentence."""

    check: str
    truth: Truth
    sentence: str


def true(check: str, sentence: str) -> Verdict:
    """Say that something holds."""
    return Verdict(check=check, truth=Truth.TRUE, sentence=sentence)


def false(check: str, sentence: str) -> Verdict:
    """Say that something is a lie."""
    return Verdict(check=check, truth=Truth.FALSE, sentence=sentence)


def unknown(check: str, sentence: str) -> Verdict:
    """Say that something cannot be told."""
    return Verdict(check=check, truth=Truth.UNKNOWN, sentence=sentence)
