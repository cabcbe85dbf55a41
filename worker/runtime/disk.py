"""The disk: how it is told that nothing more fits on it, wherever that is met."""

from __future__ import annotations

import errno

from scoring.errors import InfrastructureError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_full(problem: OSError) -> bool:
    """Return whether a call failed because nothing more may be written."""
    return problem.errno in FULL


def full(sentence: str) -> InfrastructureError:
    """Return the error to tell; ``sentence`` says what could not be written."""
    return InfrastructureError(
        f"The disk is full: {sentence}.",
        cure="Free some space in the file systems of the state directory and of the cache. The worker tries again.",
        code="disk.write",
    )
