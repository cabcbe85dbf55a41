"""What the formats leave to be believed, said in so many words: nothing that is published could contradict it."""

from __future__ import annotations

from collections.abc import Iterator

from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict


def beliefs(phase: RevealedPhase) -> Iterator[Verdict]:
    """Name what has to be believed of a revealed phase."""
    beacon = phase.latest.beacon
    if beacon is None:
        chosen = "no public beacon was mixed into its splits: that the organizers did not choose them among many is believed"
    else:
        chosen = f"the beacon “{beacon}” was mixed into its splits: that it is the public value that it names is believed"
    yield phase.believed("beacon", chosen)
    if phase.is_registered:
        return
    hidden = ", ".join(sorted(phase.rules.hidden_teams))
    yield phase.believed(
        "complete",
        "that nobody is missing from the boards, which submission of a team counts and who is eligible is believed: only submissions that"
        f" ever counted are revealed{f'; the rules hide {hidden}' if hidden else ''}",
    )
    yield phase.believed("groups", "the groups and intervals of its boards are believed")
