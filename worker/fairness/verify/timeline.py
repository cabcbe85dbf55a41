"""The order of commits compared with the stated times: what is published later must be made later.

Each push of the worker publishes everything that it has. So what a commit adds is younger than everything in the commits before it, and
anything else was backdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from worker.fairness import receipts
from worker.fairness.verify.growth import Added
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import CADENCES
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted

CHECK = "times"
SLACK = timedelta(minutes=15)  # a board carries the time at which its making began, which may take this long


def times(repository: PublicRepository, revealed: Mapping[str, RevealedPhase]) -> Verdict | None:
    """Check that nothing was backdated against the order of commits; None without a history or a signed commit."""
    seen = repository.history
    if seen is None or not seen.growth.added:
        return None
    added = sorted(seen.growth.added, key=attrgetter("place"))
    if (fault := _dated_back(added)) is not None:
        return contradicted(CHECK, fault)
    for name, phase in revealed.items():
        before = [max(one.times) for one in added if one.place < seen.revealed.get(name, 0)]
        if before and max(before) - SLACK > phase.revealed_at:
            return contradicted(
                CHECK,
                f"Phase {name} claims to have been revealed on {phase.revealed_at.isoformat()[:16]}, but what was published"
                f" before the reveal is dated up to {max(before).isoformat()[:16]}: the reveal was backdated.",
            )
    most = max((len(one.times) for one in added if one.path == receipts.PATH), default=0)
    if most > CADENCES:
        return believed(
            CHECK,
            f"What each commit added is newer than what was published before it; but up to {most} lines of the public"
            " log came in one commit, and that they were made one after the other is taken on trust.",
        )
    return consistent(CHECK, "What each commit added is newer than what was published before it.")


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
