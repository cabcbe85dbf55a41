"""How large a submission may be, for all who look: the download, the child that reads it, and a participant's own check."""

from __future__ import annotations

from scoring.errors import ParticipantError

MEGABYTE = 1_000_000
EXPANSION = 4  # a file may expand to so many times submission.max_megabytes


def largest_file(max_megabytes: float) -> int:
    """Return the most bytes that a file may have."""
    return int(max_megabytes * MEGABYTE)


def largest_expanded(max_megabytes: float) -> int:
    """Return the most bytes that are read out of a file, after decompression."""
    return largest_file(max_megabytes) * EXPANSION


def too_large(max_bytes: int) -> ParticipantError:
    """Refuse a file with more bytes than are accepted."""
    return ParticipantError(
        f"The file is larger than {max_bytes / MEGABYTE:g} MB, the limit of this challenge.",
        cure="Compress it with gzip, write fewer digits, or use Parquet or NPZ with float32.",
        code="file.too_large",
    )
