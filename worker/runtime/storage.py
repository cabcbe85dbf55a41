"""Whether the state can be recorded at all: what the disk below it says when it is asked, with or without a database that works."""

from __future__ import annotations

import tempfile
from pathlib import Path

from scoring.errors import InfrastructureError
from worker.runtime import disk
from worker.runtime.limits import GIGABYTE

PROBE_BYTES = 65536
"""As much as a transaction may need; written to a file without a name, which is gone at once."""


def fault(folder: Path) -> InfrastructureError | None:
    """Say why nothing can be written to the state directory, or None if something can."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            for _ in range(0, PROBE_BYTES, 4096):
                probe.write(bytes(4096))
    except OSError as problem:
        if disk.is_full(problem):
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
    """Say that there is less room than the reserve, or None if there is more."""
    if free_bytes >= reserve_gigabytes * GIGABYTE:
        return None
    return InfrastructureError(
        "The disk is nearly full, so the worker does not download more submissions.",
        cure="Free some space in the state directory's file system. The worker then continues.",
        code="disk.reserve",
    )
