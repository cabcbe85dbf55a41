"""``python -m tests.systemd [NAME...]``: the service under a real systemd, check by check; 1 if one failed."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.systemd.checks import CHECKS, kernel
from tests.systemd.machine import Machine
from tests.systemd.service import Stage

CGROUPS_2 = Path("/sys/fs/cgroup/cgroup.controllers")


def main() -> int:
    """Run the chosen checks, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.systemd", description=__doc__)
    names = [check.__name__ for check in CHECKS]
    parser.add_argument("names", nargs="*", choices=[*names, []], metavar="NAME", help=", ".join(names))
    chosen = parser.parse_args().names or names
    if os.geteuid() != 0 or not (shutil.which("debootstrap") and shutil.which("systemd-nspawn")):
        sys.exit("It needs root and two packages: sudo apt-get install debootstrap systemd-container")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the machine is switched off and removed
    machine = Machine()
    try:
        machine.boot()
        stage = Stage(machine)
        failed = [check for check in CHECKS if check.__name__ in chosen and not passes(check, stage)]
        return int(bool(failed))
    finally:
        machine.close()


def passes(check: Callable[[Stage], None], stage: Stage) -> bool:
    """Run one check, print its result, and return whether it passed, or cannot be run here."""
    if check is kernel and not CGROUPS_2.exists():
        sys.stdout.write(f"– {check.__name__}  skipped: this machine has no cgroups of version 2\n")
        return True
    began = time.monotonic()
    try:
        check(stage)
    except Exception:
        traceback.print_exc()
        result = "✗"
    else:
        result = "✓"
    sys.stdout.write(f"{result} {check.__name__}  {time.monotonic() - began:.1f} s  {check.__doc__}\n")
    sys.stdout.flush()
    return result == "✓"


if __name__ == "__main__":
    sys.exit(main())
