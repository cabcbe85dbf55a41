"""The Ladder (Blum and Hardt, 2015): a submission counts, and is told its own value, only if it beats its team's standing value by a step.

Otherwise the team is told the standing value again, so asking often tells hardly more than asking once. Each team has one ladder in a phase
for its public submissions, and another one for its private ones, which nobody can check. Equal content is the same rung: it inherits the
place of the first file that had it, and its answer. What the organizers take off the board is on no ladder; what a team deletes or cancels
itself stays on it, or else a team could climb again and again.

The worker makes answers and boards with these functions, and `verify` applies them to what was revealed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scoring.quality import shown
from worker.challenge.records import PhaseRules


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A scored submission as a ladder sees it.

    Attributes:
        submission: EvalAI's number.
        team: Whose ladder, and whether it is the one of public submissions.
        content: Hash of its embeddings.
        place: Of its first score among all, in the order in which they were registered.
        q_mean: Unrounded; None if it has no score on the tasks of now, and only keeps the place of its content.
    """

    submission: int
    team: tuple[int, bool]
    content: str
    place: int
    q_mean: float | None


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a submission is told.

    Attributes:
        value: Mean Q that is shown; None while values are withheld.
        counts: Whether it beat the standing value; None where no ladder says that.
        standing: The submission that counts instead of one that does not.
    """

    value: float | None
    counts: bool | None = None
    standing: int | None = None


def climbs(facts: Mapping[str, Any]) -> bool:
    """Return whether a submission is on a ladder by the facts about it: a participant's, and not taken off by the organizers."""
    return not (facts["own"] or facts["baseline"] or facts["flagged"]) and facts["removed"] is None


def ladders(rungs: Iterable[Rung], rules: PhaseRules) -> dict[int, Told]:
    """Climb every ladder; return what each submission on one is told.

    Args:
        rungs: Of one phase, in any order.
        rules: The phase's, with a step.
    """
    by_team: defaultdict[tuple[int, bool], list[Rung]] = defaultdict(list)
    for rung in rungs:
        by_team[rung.team].append(rung)
    told: dict[int, Told] = {}
    for ladder in by_team.values():
        told |= _climb(ladder, rules)
    return told


def _climb(ladder: Iterable[Rung], rules: PhaseRules) -> dict[int, Told]:
    step, told = rules.ladder_step or 0.0, {}
    by_content: dict[str, list[Rung]] = {}
    for rung in sorted(ladder, key=lambda rung: rung.place):
        by_content.setdefault(rung.content, []).append(rung)
    standing, stands = None, 0
    for same in by_content.values():
        scored = [rung for rung in same if rung.q_mean is not None]
        if not scored or scored[0].q_mean is None:
            continue
        q_mean = scored[0].q_mean
        counts = standing is None or q_mean > standing + step
        if standing is None or counts:
            standing, stands = shown(q_mean, rules.decimals, step), scored[0].submission
        for rung in scored:
            told[rung.submission] = Told(value=standing, counts=counts, standing=None if counts else stands)
    return told
