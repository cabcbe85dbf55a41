"""Make text fit to print: foreign text on one line without control characters, and counts with the right form of a noun."""

from __future__ import annotations

from collections.abc import Sequence

JOINERS = "\u200c\u200d"  # in emoji, and between Persian letters
_STRANGE = "\ufffd"


def printable(text: str) -> str:
    """Return a text as one line without terminal controls, so that its author cannot move the cursor, change colors or reverse letters.

    Line ends, tabs and unusual spaces become spaces. Every other character that is not printable (C0 and C1 controls, DEL, text direction
    marks, lone surrogates) becomes the replacement character, so that readers see that something was removed.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in JOINERS else " " if char.isspace() else _STRANGE
        for char in text
    )


def count_of(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 row``, ``1,200 rows``; ``plural`` is needed if it is not ``singular`` with an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration_of(seconds: float) -> str:
    """Return a rounded length of time, in the largest unit of which it has two: ``90 seconds``, ``10 minutes``, ``47 hours``."""
    for unit, length_s in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length_s:
            return count_of(round(seconds / length_s), unit)
    return count_of(round(seconds), "second")


def all_of(number: int, singular: str, plural: str = "") -> str:
    """Return words for all of a number of things: ``all 3 boards``, ``the only board``, ``all boards`` if there are none."""
    return (
        f"the only {singular}"
        if number == 1
        else f"all {number or ''} {plural or singular + 's'}".replace("  ", " ")
    )


def name_some(names: Sequence[str], most: int = 5, separator: str = ", ") -> str:
    """Name the first few items in a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def printable_lines(text: str) -> str:
    """Make each line of a text printable, and keep the line ends."""
    return text if text.isprintable() else "\n".join(printable(line) for line in text.split("\n"))
