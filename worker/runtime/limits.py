"""How much memory reading a submission may take; and the units."""

from __future__ import annotations

import math

from scoring.errors import OrganizerError

GIGABYTE = 1_000_000_000  # of memory as of disk
BARE_BYTES = 50_000_000  # of memory: a child that has read nothing yet; 35 MB were measured, 171 MB of one that was kept ready
READING_BYTES = 200_000_000  # what reading loads, whatever the file: 90 MB were measured for Parquet, 110 MB for a large CSV
VALUE_BYTES = 24  # of memory for each value of a good file; 13 were measured for CSV and Parquet


def reading_memory(rows: int, columns: int) -> int:
    """Return how much memory a child takes at most, besides what it has at its start, to read a good file of this shape."""
    return READING_BYTES + VALUE_BYTES * rows * columns


def check_memory(memory_gigabytes: float, *, phase: str, rows: int, columns: int) -> None:
    """Check that a good file can be read within `submission.memory_gigabytes`: else its author would be told that it takes too much.

    Raises:
        OrganizerError: If it cannot.
    """
    least = (BARE_BYTES + reading_memory(rows, columns)) / GIGABYTE
    if memory_gigabytes < least:
        raise OrganizerError(
            f"submission.memory_gigabytes is {memory_gigabytes:g}, but reading a valid file of phase {phase} ({rows:,} rows,"
            f" {columns:,} columns) may need {least:.2f} GB.",
            cure=f"Set it to {math.ceil(2 * least)} or more, because scoring needs memory too.",
            code="config.memory",
        )
