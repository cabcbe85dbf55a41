"""Plant the small faults of ``faults.toml`` one at a time, and check that the tests named there notice each of them.

Each fault is planted in a copy of the checkout. The copy has a virtual environment of its own, because the worker's child processes do
not see the folder that the tests run in; so they and the command `neuco-worker` import the copy, too. Two copies are used
at once. Their places never change, because the cache of compiled kernels depends on them: so only one run at a time in a checkout.
"""

# ruff: noqa: T201 - this is a program

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COPIES = [ROOT / ".cache" / "faults" / name for name in ("first", "second")]
PACKAGES = ("leaderboard", "scoring", "tests", "worker")
IMPORTED = (
    f"import importlib as i; print(*(next(iter(i.import_module(name).__path__)) for name in {PACKAGES}))"
)
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
PYTHON = ".venv/bin/python"
COMMAND = "#!{python}\nimport sys\nfrom worker.cli import main\nsys.exit(main())\n"


def make_copy(copy: Path) -> None:
    """Copy all files that git does not ignore, and make a virtual environment that imports the copies.

    Raises:
        SystemExit: If its processes would import other code.
    """
    shutil.rmtree(copy, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), listed.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)  # with its time, on which the cached kernels depend
    (copy / ".cache").symlink_to(ROOT / ".cache")
    venv.create(copy / ".venv", symlinks=True)
    # The libraries without their .pth files, one of which adds the checkout.
    path_file = next((copy / ".venv").glob("lib/python*/site-packages")) / "copy.pth"
    path_file.write_text(f"{copy}\n{sysconfig.get_path('purelib')}\n")
    script = (copy / PYTHON).with_name("neuco-worker")
    script.write_text(COMMAND.format(python=copy / PYTHON))
    script.chmod(0o755)
    check = subprocess.run(
        [copy / PYTHON, "-P", "-c", IMPORTED], cwd="/", env={}, capture_output=True, text=True
    )
    if check.stdout.split() != [str(copy / package) for package in PACKAGES]:
        raise SystemExit(f"Processes of {copy} import other code: {check.stdout}{check.stderr}")


def run_tests(copy: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests of a copy; return pytest's exit code and what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    environment = {**kept, "NUMBA_CACHE_DIR": str(copy / ".cache" / "numba")}
    command = [copy / PYTHON, *PYTEST, *tests]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr + done.stdout


def plant(copy: Path, fault: dict[str, Any]) -> str:
    """Run a fault's tests with the fault; return what that shows."""
    file = copy / fault["file"]
    text = file.read_text() if file.exists() else ""
    if (count := text.count(fault["text"])) != 1:
        return f"NOT PLANTED: its text occurs {count} times in {fault['file']}"
    before = file.stat()
    file.write_text(text.replace(fault["text"], fault["replacement"]))
    code, printed = run_tests(copy, fault["tests"])
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    if code == 1 and " failed" in printed[-100:]:
        return "noticed"
    return "MISSED" if code == 0 else f"UNCLEAR: pytest ended with {code}\n{printed[-3000:]}"


def main() -> int:
    """Plant the faults; return 1 if one of them was missed or could not be planted."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description="Plant faults; see tests/README.md."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults; all by default")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a fault first")
    arguments = parser.parse_args()
    faults = tomllib.loads(Path(__file__).with_name("faults.toml").read_text())
    chosen = {name: faults[name] for name in arguments.names or faults}
    waiting = iter(chosen)

    def examine(copy: Path) -> int:
        noticed = 0
        for name in waiting:
            began, verdict = time.monotonic(), plant(copy, chosen[name])
            print(f"{name:28} {verdict:8} {time.monotonic() - began:5.0f} s\n", end="", flush=True)
            noticed += verdict == "noticed"
        return noticed

    with ThreadPoolExecutor(len(COPIES)) as pool:
        list(pool.map(make_copy, COPIES))
        tests = sorted({test for fault in chosen.values() for test in fault["tests"]})
        halves = [] if arguments.trust else [tests[::2], tests[1::2]]
        for code, printed in pool.map(run_tests, COPIES, filter(None, halves)):
            if code != 0:
                raise SystemExit(f"Without a fault, pytest ended with {code}:\n{printed[-5000:]}")
        noticed = sum(pool.map(examine, COPIES))
    print(f"{noticed} of {len(chosen)} faults were noticed.")
    return int(noticed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
