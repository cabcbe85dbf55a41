"""How much memory reading a submission may take."""

from __future__ import annotations

import math

from scoring.errors import OrganizerError

GIGABYTE = 1_000_000_000  # bytes, for memory and disk alike
# memory of a child that has read nothing; 35 MB were measured
BARE_BYTES = 50_000_000
# loaded for reading any file: 90 MB were measured for Parquet, 110 MB for a large CSV
READING_BYTES = 200_000_000
VALUE_BYTES = 24  # memory per value of a valid file; 13 were measured for CSV and Parquet


def reading_memory(rows: int, columns: int) -> int:
    """Return the most memory in bytes that a child needs, in addition to that at its start, to read a valid file of this shape."""
    return READING_BYTES + VALUE_BYTES * rows * columns


def check_memory(memory_gigabytes: float, *, phase: str, rows: int, columns: int) -> None:
    """Check that a valid file can be read within `submission.memory_gigabytes`; otherwise its author would be blamed for it.

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
