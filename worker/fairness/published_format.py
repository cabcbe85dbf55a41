"""The format of everything that a challenge publishes: commitments, log, receipts, and reveals."""

from __future__ import annotations

import json
from typing import Literal

from scoring.errors import OrganizerError

FORMAT: Literal[1] = 1


def check_format(commitments: bytes | None) -> None:
    """Check that this version reads a repository's format, which is the one of its first commitment.

    Raises:
        OrganizerError: If it does not.
    """
    try:
        stated = json.loads(commitments or b"[]")[0]["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return  # the checks report it
    if isinstance(stated, int) and stated != FORMAT:
        raise OrganizerError(
            f"The repository has format {stated}; this version reads format {FORMAT}.",
            cure="Check it with the version of neuco-worker that its commitment.json names.",
            code="verify.format",
        )
