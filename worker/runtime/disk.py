"""A full disk: how it is recognized and reported everywhere."""

from __future__ import annotations

import errno

from scoring.errors import InfrastructureError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


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
