"""An older clone of the same repository: what it holds may not have been taken away since."""

from __future__ import annotations

from collections.abc import Iterator

from worker.fairness.verify.growth import GROWING, grew
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted

CHECK = "older clone"


def older_verdicts(newer: PublicRepository, older: PublicRepository) -> Iterator[Verdict]:
    """Compare a repository with an older clone, or an older copy of its files.

    Every commit of the older one must be among those of the newer one, and every file that may only grow must begin with what it was.
    """
    commit = older.commit
    if commit is None or newer.history is None:
        yield believed(
            CHECK, "One of the two is a plain folder: their files are compared, their histories cannot be."
        )
    elif commit.hash in newer.history.commits:
        yield consistent(
            CHECK,
            f"Commit {commit.hash[:10]} of the older clone ({commit.at.isoformat()}), and so every one before it, is in this history.",
        )
    else:
        yield contradicted(
            CHECK,
            f"History was rewritten: commit {commit.hash[:10]} of the older clone ({commit.at.isoformat()}) is not in this history.",
        )
    for path in GROWING:
        try:
            goes_on = grew(path, older.files.get(path, b""), newer.files.get(path, b""))
        except (ValueError, TypeError, RecursionError):
            goes_on = False
        if goes_on:
            yield consistent(CHECK, f"{path} begins with what the older clone has of it.")
        else:
            yield contradicted(
                CHECK, f"History was rewritten: {path} does not begin with what the older clone has of it."
            )
