"""The repository over time: the order of its commits against the stated times, an older clone of it, and the tip that visitors see.

Each push of the worker publishes everything that it has. So what a commit adds is younger than everything in the commits before it, and
anything else was backdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from scoring.printable import name_some
from worker.fairness import commitments, receipts, signing
from worker.fairness.signing import openssh
from worker.fairness.verify.commits import is_served
from worker.fairness.verify.growth import GROWING, Added, grew, signed_in
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import CADENCES
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict, believed, changed, consistent, contradicted

TIMES = "times"
SLACK = timedelta(minutes=15)  # a board carries the time at which its making began, which may take this long


def times(repository: PublicRepository, revealed: Mapping[str, RevealedPhase]) -> Verdict | None:
    """Check that nothing was backdated against the order of commits; None without a history or a signed commit."""
    seen = repository.history
    if seen is None or not seen.growth.added:
        return None
    added = sorted(seen.growth.added, key=attrgetter("place"))
    if (fault := _dated_back(added)) is not None:
        return contradicted(TIMES, fault)
    for name, phase in revealed.items():
        before = [max(one.times) for one in added if one.place < seen.revealed.get(name, 0)]
        if before and max(before) - SLACK > phase.revealed_at:
            return contradicted(
                TIMES,
                f"Phase {name} claims to have been revealed on {phase.revealed_at.isoformat()[:16]}, but what was published"
                f" before the reveal is dated up to {max(before).isoformat()[:16]}: the reveal was backdated.",
            )
    most = max((len(one.times) for one in added if one.path == receipts.PATH), default=0)
    if most > CADENCES:
        return believed(
            TIMES,
            f"What each commit added is newer than what was published before it; but up to {most} lines of the public"
            " log came in one commit, and that they were made one after the other is taken on trust.",
        )
    return consistent(TIMES, "What each commit added is newer than what was published before it.")


def _dated_back(added: Iterable[Added]) -> str | None:
    """Report what was published after something younger."""
    newest: datetime | None = None
    for _, together in groupby(added, key=attrgetter("place")):
        found = list(together)
        for one in found:
            if newest is not None and min(one.times) < newest - SLACK:
                return (
                    f"Commit {one.step.commit[:10]} by {one.step.author} added something to {one.path} that is dated"
                    f" {min(one.times).isoformat()[:16]},"
                    f" but {newest.isoformat()[:16]} had already been published: it was backdated."
                )
        newest = max([max(one.times) for one in found] + ([] if newest is None else [newest]))
    return None


OLDER = "older clone"


def older_verdicts(newer: PublicRepository, older: PublicRepository) -> Iterator[Verdict]:
    """Compare a repository with an older clone, or an older copy of its files.

    Every commit of the older one must be in the newer one, and every file that may only grow must begin with its older content.
    """
    grown = {path: _goes_on(path, older, newer) for path in GROWING}
    yield _of_commits(newer, older, whole=all(grown.values()))
    for path, goes_on in grown.items():
        if goes_on:
            yield consistent(OLDER, f"{path} still begins with what the older clone has of it.")
        else:
            yield contradicted(
                OLDER, f"History was rewritten: {path} does not begin with what the older clone has of it."
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
            OLDER,
            "One of the two is a plain folder, so only their files can be compared, not their histories.",
        )
    named = f"commit {commit.hash[:10]} of the older clone ({commit.at.isoformat()})"
    if commit.hash in newer.history.commits:
        return consistent(OLDER, f"C{named[1:]} and all commits before it are in this history.")
    if whole:
        # Anyone who may push may force a push, after which the challenge publishes everything again.
        return believed(
            OLDER,
            f"History was rewritten: {named} is not in this history. Its commitments, log and boards are all still here."
            " Who forced the push is not known; a worker that notices a forced push records it in its register.",
        )
    return contradicted(OLDER, f"History was rewritten: {named} is not in this history.")


SIGNED, TIP = "signed", "tip"


def signature(repository: PublicRepository) -> Verdict:
    """Check that the files are in a commit of the challenge."""
    seen, commit = repository.history, repository.commit
    if seen is None or commit is None:
        return believed(
            SIGNED,
            "This is a plain folder, so it cannot be checked whether the challenge has signed its files.",
        )
    if seen.key is None:
        return changed(
            SIGNED,
            "No commit is signed with a key that commitment.json names. Nothing shows that the challenge published"
            f" this; the newest commit, {commit.hash[:10]}, is by {commit.author}.",
        )
    return consistent(
        SIGNED,
        f"Commit {commit.hash[:10]}, and so every file and commit below it, is signed with the challenge's key:"
        f" {openssh(seen.key)}",
    )


def tip(repository: PublicRepository) -> Iterator[Verdict]:
    """Say who else has changed what visitors see, and which files are not the challenge's."""
    foreign = set(repository.strangers)
    if (seen := repository.history) is not None and seen.changed:
        if seen.changed_by:
            commits = [f"commit {step.commit[:10]} by {step.author}" for step in reversed(seen.changed_by)]
            yield changed(
                TIP,
                f"{name_some(list(filter(is_served, seen.changed)))}: changed by {name_some(commits)}. The challenge has not signed"
                " that, so what visitors see is not what it published. The newest commit that it has signed is checked instead.",
            )
        foreign.update(path for path in seen.changed if not is_served(path))
    if served := sorted(filter(is_served, foreign)):
        yield believed(
            TIP, f"These files are not the worker's, but may change what visitors see: {name_some(served)}."
        )
    if others := sorted(foreign.difference(served)):
        yield believed(TIP, f"These files are not the worker's, and are not checked: {name_some(others)}.")
