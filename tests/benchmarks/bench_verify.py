"""Measure memory and time of ``verify`` on a repository with a long history.

Run with ``python -m tests.benchmarks.bench_verify``; ``--versions 300`` is quicker, ``--versions 2000 --tasks 9 --folds 200`` has large
scores. The target is less than 300 MB for 1,500 versions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.long_challenge import Size, make_repository

# Prints peak memory and CPU time of a process and its children. It runs in a small process, because a child starts with its parent's
# memory.
_MEASURE = """
import json, resource, subprocess, sys
out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE).stdout
taken = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([out.decode(), taken.ru_maxrss, taken.ru_utime + taken.ru_stime]))
"""


def measured(*arguments: str) -> tuple[str, float, float]:
    """Run `neuco-worker` in a separate process; return what it prints, peak memory in MB and seconds of CPU time."""
    command = [os.fspath(Path(sys.executable).with_name("neuco-worker")), *arguments]
    done = subprocess.run([sys.executable, "-c", _MEASURE, *command], capture_output=True, check=True)
    printed, kilobytes, seconds = json.loads(done.stdout)
    return printed, kilobytes * 1024 / 1e6, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=Size.versions)
    parser.add_argument("--teams", type=int, default=Size.teams)
    parser.add_argument("--tasks", type=int, default=Size.tasks)
    parser.add_argument("--folds", type=int, default=Size.folds)
    options = parser.parse_args()
    size = Size(**vars(options))
    with tempfile.TemporaryDirectory() as folder:
        repository = make_repository(Path(folder), size)
        report, megabytes, seconds = measured("verify", str(repository), "--json")
    verdict = json.loads(report)["verdict"]
    sys.stdout.write(f"{size}: {megabytes:.0f} MB, {seconds:.1f} s of processor time, {verdict}\n")


if __name__ == "__main__":
    main()
