"""Fuzz every target in turn: ``make fuzz``, or ``FUZZ_SECONDS=600 python -m tests.fuzz [TARGET ...]``.

Prints executions and seed. Inputs that break a property are written to ``.cache/fuzz/crashes``; once the fault is fixed, a small
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
from pathlib import Path

from scoring.inputs.formats import FORMATS

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
READING = ROOT / "tests" / "scoring" / "inputs" / "corpus"
WORK = ROOT / ".cache" / "fuzz"
MEMORY_MB = 1500  # ceiling of one process: interpreter, pyarrow and a table of one megabyte
HANG_S = 20  # one input that takes longer is a hang
READERS = tuple(each.suffix[1:] for each in FORMATS)
NAMES = (*READERS, "evalai", "configuration", "repository")
LONGEST = {"configuration": 1000}  # bytes of an input: the YAML reader looks at each character many times


def fuzz(name: str, *, seconds: int, seed: int) -> bool:
    """Fuzz one target, print its figures, and return whether its property held."""
    inputs, crashes = WORK / name, WORK / "crashes"
    for folder in (inputs, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    given = [str(CORPUS / name), *([str(READING)] if name in READERS else [])]
    command = [
        *(sys.executable, "-m", "tests.fuzz.one", name, str(inputs), *given),
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
        output = log.read()
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
    # libFuzzer leaves without letting go of the interpreter; Arrow's threads then wait for it, after everything is done
    holds = process.returncode == 0 or (
        process.returncode < 0 and counted is not None and "ERROR" not in output
    )
    executions = counted.group(1) if counted else "?"
    print(
        f"{name}: {executions} executions, seed {seed}: {'no finding' if holds else output[-3000:]}",
        flush=True,
    )
    return holds


def main(names: list[str]) -> int:
    """Fuzz the targets named, or all."""
    names = names or list(NAMES)
    seconds = max(1, int(os.environ.get("FUZZ_SECONDS", "90")) // len(names))
    seed = int(os.environ.get("FUZZ_SEED", "0")) or 1 + secrets.randbelow(2**31 - 1)
    failed = [name for name in names if not fuzz(name, seconds=seconds, seed=seed)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
