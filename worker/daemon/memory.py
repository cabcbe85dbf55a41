"""Settings of the C library that keep the memory of a long-running process small."""

from __future__ import annotations

import ctypes

# Parameters of mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
BLOCK = 256 * 1024  # bytes; larger blocks are mapped, and returned to the system when they are freed
ARENAS = 2  # heaps that threads share; by default each thread gets its own


def return_early() -> None:
    """Return freed memory to the system early instead of keeping it.

    The leaderboard's files and a listing are in memory only briefly. By default, however, glibc keeps blocks of their size in its heaps
    after some were freed, and has a heap per thread, so a daemon would stay as large as all its peaks together. Without glibc, this does
    nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl, macOS
        return
    mallopt(M_ARENA_MAX, ARENAS)
    mallopt(M_MMAP_THRESHOLD, BLOCK)
    mallopt(M_TRIM_THRESHOLD, 2 * BLOCK)
