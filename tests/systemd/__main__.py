"""``python -m tests.systemd``: the service under a real systemd, check by check; 1 if one failed."""

from __future__ import annotations

import argparse
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable

from tests.systemd import checks_lifetime, checks_service, checks_trouble
from tests.systemd.container import Container
from tests.systemd.machine import Impossible
from tests.systemd.root import base
from tests.systemd.service import Stage
from tests.systemd.user_mode import UserMode

KINDS = {"container": Container, "uml": UserMode}
CHECKS: tuple[Callable[[Stage], None], ...] = (
    checks_service.install,
    checks_service.ready,
    checks_service.credentials,
    checks_service.sandboxing,
    checks_service.push_ssh,
    checks_service.push_path,
    checks_service.reload,
    checks_trouble.kill_daemon,
    checks_trouble.kill_child,
    checks_trouble.watchdog,
    checks_trouble.memory_reading,
    checks_trouble.memory_scoring,
    checks_service.stop,
    checks_service.timer,
    checks_service.two,
    checks_lifetime.backup_restore,
    checks_trouble.power_off,
    checks_lifetime.uninstall,
)
NAMES = [check.__name__ for check in CHECKS]


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen checks on the chosen kinds of machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.systemd", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="NAME", help=f"only this check: {', '.join(NAMES)}"
    )
    parser.add_argument("--on", action="append", choices=list(KINDS), help="only this kind of machine")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the machine is switched off and removed
    say(f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}")
    wanted = [check for check in CHECKS if not chosen.only or check.__name__ in chosen.only]
    failed = 0
    for kind in chosen.on or KINDS:
        failed += run_on(kind, wanted)
    return int(failed > 0)


def run_on(kind: str, wanted: list[Callable[[Stage], None]]) -> int:
    """Run checks on one kind of machine and return how many failed."""
    say(f"\n{KINDS[kind].title}")
    began = time.monotonic()
    try:
        machine = KINDS[kind](base())
        machine.boot()
    except Impossible as problem:
        say(f"  skipped: {problem}")
        return 0
    try:
        say(f"  booted {machine.run('cat', '/etc/debian_version').strip()}  {time.monotonic() - began:.1f} s")
        stage = Stage(machine)
        return sum(not passes(check, stage) for check in wanted)
    finally:
        machine.close()


def passes(check: Callable[[Stage], None], stage: Stage) -> bool:
    """Run one check, print its result, and return whether it passed or was skipped."""
    began = time.monotonic()
    name = check.__name__
    try:
        check(stage)
    except Impossible as problem:
        say(f"  - {name}  skipped: {problem}")
        return True
    except Exception as problem:
        say(f"  ✗ {name}  {time.monotonic() - began:.1f} s")
        place = traceback.extract_tb(problem.__traceback__)
        line = next(frame for frame in reversed(place) if "checks_" in frame.filename)
        say(f"      {line.name}, line {line.lineno}: {line.line}")
        say("      " + str(problem).replace("\n", "\n      "))
        return False
    say(f"  ✓ {name}  {time.monotonic() - began:.1f} s  {(check.__doc__ or '').strip()}")
    return True


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - the result is what this command is for


if __name__ == "__main__":
    sys.exit(main())
