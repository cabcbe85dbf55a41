"""Memory that is freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from worker.daemon import memory
if sys.argv[1] == "early":
    memory.return_early()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

bytes(30_000_000)  # freeing one large block teaches glibc to keep those of its size
before = resident()
for _ in range(3):
    blocks = [bytes([1]) * 1_000_000 for _ in range(40)]
    kept = bytes([1]) * 100_000  # lies above them
    del blocks
print((resident() - before) // 1_000_000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and asks glibc")
def test_large_blocks_are_given_back_at_once() -> None:
    """By default glibc keeps them; the daemon's settings change that."""
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True).stdout)
        for how in ("late", "early")
    )
    assert kept > 20
    assert given_back < 5
