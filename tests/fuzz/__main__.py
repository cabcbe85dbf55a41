"""Fuzz every target in turn: ``make fuzz``, or ``FUZZ_SECONDS=600 python -m tests.fuzz [TARGET ...]``.

Prints executions, seed and commit. Inputs that break a property are written to ``.cache/fuzz/crashes``; once the fault is fixed, a small
form of the input belongs in ``tests/fuzz/corpus/TARGET``.
"""

# ruff: noqa: T201 - this is a program

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
READING = ROOT / "tests" / "scoring" / "inputs" / "corpus"
WORK = ROOT / ".cache" / "fuzz"
MEMORY_MB = 1500  # ceiling of one process: interpreter, pyarrow and a table of one megabyte
HANG_S = 20  # one input that takes longer is a hang
READERS = ("csv", "gzip", "zip", "npz", "parquet")
NAMES = (*READERS, "evalai", "configuration", "git", "repository")
LONGEST = {"configuration": 1000}  # bytes of an input: the YAML reader looks at each character many times


def fuzz(name: str, *, seconds: int, seed: int) -> tuple[int, bool]:
    """Fuzz one target; return the number of executions, and whether its property held."""
    found, crashes = WORK / name, WORK / "crashes"
    found.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    given = [str(CORPUS / name), *([str(READING)] if name in READERS else [])]
    command = [
        *(sys.executable, "-m", "tests.fuzz.one", name, str(found), *given),
        *(f"-max_total_time={seconds}", f"-seed={seed}", "-print_final_stats=1"),
        f"-max_len={LONGEST.get(name, 8192)}",
        *(f"-rss_limit_mb={MEMORY_MB}", f"-timeout={HANG_S}", f"-artifact_prefix={crashes}/{name}-"),
    ]
    if (words := CORPUS / f"{name}.words").is_file():
        command.append(f"-dict={words}")
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            process.wait(timeout=seconds + HANG_S + 60)
        except subprocess.TimeoutExpired:  # the code below checks whether it hangs or only cannot exit
            process.kill()
            process.wait()
        log.seek(0)
        said = log.read()
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    # libFuzzer leaves without letting go of the interpreter; Arrow's threads then wait for it, after everything is done
    good = process.returncode == 0 or (process.returncode < 0 and counted is not None and "ERROR" not in said)
    if not good:
        print(said[-3000:])
    return int(counted.group(1)) if counted else 0, good


def main(arguments: list[str]) -> int:
    """Fuzz the targets named, or all."""
    names = arguments or list(NAMES)
    seconds = max(1, int(os.environ.get("FUZZ_SECONDS", "90")) // len(names))
    seed = int(os.environ.get("FUZZ_SEED", "0")) or 1 + secrets.randbelow(2**31 - 1)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    total, held = 0, True
    for name in names:
        begun = time.monotonic()
        executions, good = fuzz(name, seconds=seconds, seed=seed)
        total, held = total + executions, held and good
        took = time.monotonic() - begun
        print(
            f"{name:14s} {executions:>12,} executions in {took:4.0f} s  {'ok' if good else 'BROKEN'}",
            flush=True,
        )
    print(
        f"{total:,} executions, seed {seed}, commit {commit or 'unknown'}: {'no finding' if held else 'see above'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
