"""What the formats leave to be believed, said in so many words: nothing that is published could contradict it."""

from __future__ import annotations

from collections.abc import Iterator

from worker.fairness.verify.drawn import drawn
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict


def beliefs(phase: RevealedPhase) -> Iterator[Verdict]:
    """Name what has to be believed of a revealed phase."""
    yield drawn(phase)
    for team, pseudonym in phase.pseudonyms.items():
        yield phase.believed(
            "names",
            f"“{pseudonym}” is a pseudonym of team number {team}, whose name was removed: that it was called as older lines of the history"
            " say is believed; its submissions, scores and ranks are checked like those of all others",
        )
    if phase.is_registered:
        yield phase.believed(
            "evalai",
            "what only EvalAI knows is believed: whose a submission is, that somebody sent it, when, and whether it was public, and that"
            " every file that was sent is in the register; their owners see it there",
        )
        if len(phase.boards) > 1:
            yield phase.believed(
                "groups", "the tie groups, intervals and movements of its boards before the last are believed"
            )
        return
    hidden = ", ".join(sorted(phase.rules.hidden_teams))
    yield phase.believed(
        "complete",
        "that nobody is missing from the boards, which submission of a team counts and who is eligible is believed: only submissions that"
        f" ever counted are revealed{f'; the rules hide {hidden}' if hidden else ''}",
    )
    yield phase.believed("groups", "the groups and intervals of its boards are believed")
