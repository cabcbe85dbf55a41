"""Memory: what a process that runs for a month asks of the C library."""

from __future__ import annotations

import ctypes

# Parameters of mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
BLOCK = 256 * 1024  # bytes; larger ones are mapped, and given back as soon as they are freed
ARENAS = 2  # heaps that threads share; by default each thread gets one of its own


def return_early() -> None:
    """Let freed memory go back to the system instead of being kept for later.

    The leaderboard's files and a listing are in memory for a moment only, but by default glibc keeps blocks of their size in its heaps
    once it has seen some freed, and a heap per thread: a daemon then stays as large as its busiest moments together. Elsewhere than on
    glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl, macOS
        return
    mallopt(M_ARENA_MAX, ARENAS)
    mallopt(M_MMAP_THRESHOLD, BLOCK)
    mallopt(M_TRIM_THRESHOLD, 2 * BLOCK)
