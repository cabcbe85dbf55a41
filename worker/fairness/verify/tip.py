"""What visitors see: the tip of the branch, compared with the newest commit that the challenge has signed."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.printable import name_some
from worker.fairness.commit_signatures import openssh
from worker.fairness.verify.commits import is_served
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, changed, consistent

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
