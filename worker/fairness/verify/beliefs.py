"""What must be trusted, stated explicitly, because nothing that is published could contradict it."""

from __future__ import annotations

from collections.abc import Iterator

from worker.fairness.verify.drawn import drawn
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict


def beliefs(phase: RevealedPhase) -> Iterator[Verdict]:
    """Yield what must be trusted about a revealed phase."""
    yield drawn(phase)
    for team, pseudonym in phase.pseudonyms.items():
        yield phase.believed(
            "names",
            f"“{pseudonym}” is the pseudonym of team number {team}, whose name was removed. Its former name, in older"
            " lines of the history, is taken on trust. Its submissions, scores and ranks are checked like all others",
        )
    yield phase.believed(
        "evalai",
        "what only EvalAI knows is taken on trust: who sent each submission and when, whether it was public, and"
        " whether one is missing from the register. Each team can see its own submissions at EvalAI",
    )
    if len(phase.boards) > 1:
        yield phase.believed(
            "groups", "the tie groups, intervals and movements of all boards but the last are taken on trust"
        )
