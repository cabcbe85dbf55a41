"""The disk: how a full one is recognized and reported, and whether the state can be written, without a working database."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

from scoring.errors import InfrastructureError
from worker.runtime.limits import GIGABYTE

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PROBE_BYTES = 65536
"""At least as much as a transaction needs; written to an unnamed file that is removed at once."""


def is_full(problem: OSError) -> bool:
    """Return whether a call failed because the disk or a quota is full."""
    return problem.errno in FULL


def full(sentence: str) -> InfrastructureError:
    """Return the error for a full disk; ``sentence`` says what could not be written."""
    return InfrastructureError(
        f"The disk is full: {sentence}.",
        cure="Free some space in the file systems of the state directory and of the cache. The worker tries again.",
        code="disk.write",
    )


def fault(folder: Path) -> InfrastructureError | None:
    """Return why nothing can be written to the state directory, None if something can."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            for _ in range(0, PROBE_BYTES, 4096):
                probe.write(bytes(4096))
    except OSError as problem:
        if is_full(problem):
            return InfrastructureError(
                f"The disk with the state in {folder} is full. The worker cannot record anything, so it has stopped working.",
                cure="Free some space. The worker then continues, and nothing is lost.",
                code="disk.full",
            )
        return InfrastructureError(
            f"The worker cannot write to the state directory {folder} ({problem.strerror}).",
            cure="Check its owner and its file system. When the cause is fixed, the worker continues.",
            code="disk.unwritable",
        )
    return None


def below_reserve(free_bytes: int, reserve_gigabytes: float) -> InfrastructureError | None:
    """Return the error that there is less free space than the reserve, None if there is more."""
    if free_bytes >= reserve_gigabytes * GIGABYTE:
        return None
    return InfrastructureError(
        "The disk is nearly full, so the worker does not download more submissions.",
        cure="Free some space in the state directory's file system. The worker then continues.",
        code="disk.reserve",
    )
