"""The Ladder (Blum and Hardt, 2015): a submission counts and is shown its own value only if it beats its team's best value by a step.

Otherwise the team is shown its earlier value again, so that many submissions reveal hardly more than one. Each team has one ladder in a
phase for its public submissions, and another one for its private ones, which nobody can check. Equal content is the same rung: it has the
place of the first file with that content, and the same answer. What the organizers take off the board is on no ladder. What a team deletes
or cancels itself stays on it; otherwise a team could climb again and again.

The worker makes answers and boards with these functions, and `verify` applies them to what was revealed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from scoring.quality import shown
from worker.challenge.records import PhaseRules
from worker.fairness.events import SubmissionFacts


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A scored submission on a ladder.

    Attributes:
        submission: EvalAI's number.
        team: The team's key, and whether this is its ladder of public submissions.
        content: Hash of its embeddings.
        place: Position of its first score among all registered scores.
        q_mean: Unrounded; None if it has no score on the present tasks: it then only keeps its content's place.
    """

    submission: int
    team: tuple[int, bool]
    content: str
    place: int
    q_mean: float | None


@dataclass(frozen=True, kw_only=True)
class ShownValue:
    """The score that a submission is shown.

    Attributes:
        value: Mean Q that is shown; None while values are withheld, and for :data:`AFTER_THE_CLOSE`.
        counts: Whether it beat the team's earlier value; None without a ladder.
    """

    value: float | None
    counts: bool | None = None


AFTER_THE_CLOSE = ShownValue(value=None, counts=False)
"""What a submission is shown that was scored for the first time after its phase was closed: no value, and that it does not count."""


def climbs(facts: SubmissionFacts) -> bool:
    """Return whether a submission is on a ladder by its facts: it is a participant's and was not taken off by the organizers."""
    return not (facts.own or facts.baseline or facts.flagged) and facts.removed is None


def ladders(rungs: Iterable[Rung], rules: PhaseRules) -> dict[int, ShownValue]:
    """Compute every ladder; return the value that each of its submissions is shown.

    Args:
        rungs: The submissions of one phase, in any order.
        rules: The phase's rules, with a step.
    """
    by_team: defaultdict[tuple[int, bool], list[Rung]] = defaultdict(list)
    for rung in rungs:
        by_team[rung.team].append(rung)
    shown_values: dict[int, ShownValue] = {}
    for ladder in by_team.values():
        shown_values |= _climb(ladder, rules)
    return shown_values


def _climb(ladder: Iterable[Rung], rules: PhaseRules) -> dict[int, ShownValue]:
    step, shown_values = rules.ladder_step or 0.0, {}
    by_content: dict[str, list[Rung]] = {}
    for rung in sorted(ladder, key=lambda rung: rung.place):
        by_content.setdefault(rung.content, []).append(rung)
    standing = None
    for same in by_content.values():
        scored = [rung for rung in same if rung.q_mean is not None]
        if not scored or scored[0].q_mean is None:
            continue
        q_mean = scored[0].q_mean
        counts = standing is None or q_mean > standing + step
        if standing is None or counts:
            standing = shown(q_mean, rules.decimals, step)
        for rung in scored:
            shown_values[rung.submission] = ShownValue(value=standing, counts=counts)
    return shown_values
