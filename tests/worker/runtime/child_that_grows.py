"""The work of a child process of the tests: another process, which it starts, takes memory and keeps it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

GROW = """import sys, time
taken = bytes(1) * int(sys.argv[1])
print(flush=True)
time.sleep(1000)"""


def main(order: Mapping[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Take as much memory as ordered, report the process that holds it, and end only by force."""
    with subprocess.Popen(
        [sys.executable, "-c", GROW, str(order["bytes"])], stdout=subprocess.PIPE
    ) as helper:
        assert helper.stdout is not None
        helper.stdout.readline()
        say(kind="progress", pid=helper.pid)
        helper.wait()
    return {}
