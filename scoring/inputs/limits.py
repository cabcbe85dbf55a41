"""The size limits of a submission, for the download, the child that reads it, and a participant's own check."""

from __future__ import annotations

from scoring.errors import ParticipantError
from scoring.inputs.formats import listed

MEGABYTE = 1_000_000
EXPANSION = 4  # a file may expand to this many times submission.max_megabytes
MOST_MEGABYTES = 1024
"""``submission.max_megabytes`` if the organizers do not set it, and what ``neuco-check`` assumes."""


def largest_file(max_megabytes: float) -> int:
    """Return the largest allowed size of a file, in bytes."""
    return int(max_megabytes * MEGABYTE)


def largest_expanded(max_megabytes: float) -> int:
    """Return the most bytes that are read out of a file, after decompression."""
    return largest_file(max_megabytes) * EXPANSION


def too_large(max_bytes: int) -> ParticipantError:
    """Return the error for a file that is too large."""
    return ParticipantError(
        f"The file is larger than {max_bytes / MEGABYTE:g} MB, the limit of this challenge.",
        hint=f"Compress it with gzip, write fewer digits, or use {listed(text=False)} with float32.",
        code="file.too_large",
    )
