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
from typing import Any

from tests.benchmarks.long_challenge import Size, make_repository

# Prints peak memory and CPU time of a process and its children. It runs in a small process, because a child starts with its parent's
# memory.
_MEASURE = """
import json, resource, subprocess, sys
out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE).stdout
taken = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([json.loads(out), taken.ru_maxrss, taken.ru_utime + taken.ru_stime]))
"""


def verified(repository: Path) -> tuple[dict[str, Any], float, float]:
    """Verify a repository in a separate process; return its report, peak memory in MB and seconds of CPU time."""
    worker = os.fspath(Path(sys.executable).with_name("neuco-worker"))
    command = [worker, "verify", str(repository), "--json"]
    done = subprocess.run([sys.executable, "-c", _MEASURE, *command], capture_output=True, check=True)
    report, kilobytes, seconds = json.loads(done.stdout)
    return report, kilobytes * 1024 / 1e6, seconds


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
        report, megabytes, seconds = verified(make_repository(Path(folder), size))
    sys.stdout.write(f"{size}: {megabytes:.0f} MB, {seconds:.1f} s of processor time, {report['verdict']}\n")


if __name__ == "__main__":
    main()
