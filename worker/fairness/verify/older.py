"""Comparison with an older clone of the same repository: nothing in it may have disappeared since."""

from __future__ import annotations

from collections.abc import Iterator

from worker.fairness import commitments, signing
from worker.fairness.verify.growth import GROWING, grew, signed_in
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted

CHECK = "older clone"


def older_verdicts(newer: PublicRepository, older: PublicRepository) -> Iterator[Verdict]:
    """Compare a repository with an older clone, or an older copy of its files.

    Every commit of the older one must be in the newer one, and every file that may only grow must begin with its older content.
    """
    grown = {path: _goes_on(path, older, newer) for path in GROWING}
    yield _of_commits(newer, older, whole=all(grown.values()))
    for path, goes_on in grown.items():
        if goes_on:
            yield consistent(CHECK, f"{path} still begins with what the older clone has of it.")
        else:
            yield contradicted(
                CHECK, f"History was rewritten: {path} does not begin with what the older clone has of it."
            )


def _goes_on(path: str, older: PublicRepository, newer: PublicRepository) -> bool:
    """Return whether a file still has everything that the older clone has of it, also what only its unsigned commits have."""
    later = newer.files.get(path, b"")
    signed = [] if older.history is None else older.history.growth.signed
    keys = signing.keys_of(newer.files.get(commitments.PATH))
    unsigned = {one for one, _ in signed if one[0] == path}
    return grew(path, older.files.get(path, b""), later) and unsigned <= signed_in(path, later, keys)


def _of_commits(newer: PublicRepository, older: PublicRepository, *, whole: bool) -> Verdict:
    """Look for the older clone's commit; ``whole`` says whether every file that may only grow continues its content."""
    commit = older.commit
    if commit is None or newer.history is None:
        return believed(
            CHECK,
            "One of the two is a plain folder, so only their files can be compared, not their histories.",
        )
    named = f"commit {commit.hash[:10]} of the older clone ({commit.at.isoformat()})"
    if commit.hash in newer.history.commits:
        return consistent(CHECK, f"C{named[1:]} and all commits before it are in this history.")
    if whole:
        # Anyone who may push may force a push, after which the challenge publishes everything again.
        return believed(
            CHECK,
            f"History was rewritten: {named} is not in this history. Its commitments, log and boards are all still here."
            " Who forced the push is not known; a worker that notices a forced push records it in its register.",
        )
    return contradicted(CHECK, f"History was rewritten: {named} is not in this history.")
