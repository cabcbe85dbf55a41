"""Text from outside on a terminal: one line, and nothing that a terminal obeys."""

from __future__ import annotations

_JOINERS = "\u200c\u200d"  # in emoji, and between Persian letters
_STRANGE = "\ufffd"


def printable(text: str) -> str:
    """Return a text as one line that a terminal only shows: its author cannot move the cursor, change colors or reverse letters.

    Ends of lines, tabs and odd spaces become spaces. Every other character that is not printable (C0 and C1 controls, DEL, directions,
    lone surrogates) becomes the replacement character, so that it is seen that something stood there.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _JOINERS else " " if char.isspace() else _STRANGE
        for char in text
    )


def printable_lines(text: str) -> str:
    """Make each line of a text printable; for texts that have lines of their own."""
    return text if text.isprintable() else "\n".join(printable(line) for line in text.split("\n"))
