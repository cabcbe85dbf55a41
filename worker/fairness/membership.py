"""Who is on a board, by the facts, scores and rules that are registered, after the Ladder.

The worker makes its answers and boards with these functions, and `verify` applies them to what was revealed.

The Ladder (Blum and Hardt, 2015): a submission counts and is shown its own value only if it is better than the team's value by a step.
Otherwise the team is shown its earlier value again, so that many submissions reveal hardly more than one. Each team has one ladder in a
phase for its public submissions, and another one for its private ones, which nobody can check. Equal content has one place,
that of the first file with it, and one answer. What the organizers take off the board is on no ladder, but its answer shows no more than
one would. A disqualified team stays on its ladder: it gets the answers that it would get anyway, and no board shows it. What anybody
writes at EvalAI later (a flag, a baseline mark, a deletion, a cancellation) changes neither a ladder nor a board.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard import Entry, PhaseRules
from scoring.metrics import shown
from worker.fairness.events import QualifyingEvent, SubmissionFacts


@dataclass(frozen=True, kw_only=True)
class LadderEntry:
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
    made_private = facts.public_at_first and not facts.public
    return not facts.own and facts.removed is None and not made_private


def ladders(entries: Iterable[LadderEntry], rules: PhaseRules) -> dict[int, ShownValue]:
    """Compute every ladder; return the value that each of its submissions is shown.

    Args:
        entries: The submissions of one phase, in any order.
        rules: The phase's rules, with a step.
    """
    step = rules.ladder_step or 0.0
    by_content: defaultdict[tuple[tuple[int, bool], str], list[LadderEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.place):
        by_content[entry.team, entry.content].append(entry)
    standing: dict[tuple[int, bool], float] = {}
    shown_values: dict[int, ShownValue] = {}
    for (team, _), same in by_content.items():
        scored = [(entry.submission, entry.q_mean) for entry in same if entry.q_mean is not None]
        if not scored:
            continue
        _, q_mean = scored[0]
        counts = team not in standing or q_mean > standing[team] + step
        if counts:
            standing[team] = shown(q_mean, rules.decimals, step)
        value = ShownValue(value=standing[team], counts=counts)
        shown_values |= {submission: value for submission, _ in scored}
    return shown_values


def stands(facts: SubmissionFacts | QualifyingEvent) -> bool:
    """Return whether EvalAI has a submission's answer, and the organizers have not taken it off the board."""
    return facts.answered and facts.removed is None


def is_baseline(facts: SubmissionFacts, rules: PhaseRules) -> bool:
    """Return whether a submission is a baseline: the organizers' own, under a name that the rules list."""
    return facts.own and facts.method in rules.baselines


def entry(
    facts: SubmissionFacts,
    rules: PhaseRules,
    scores: Mapping[str, Sequence[float]],
    *,
    eligible: bool,
    climbed: bool = True,
) -> Entry | None:
    """Return a submission's entry; None if it is on no board, whatever its score.

    Args:
        facts: The submission's facts.
        rules: The phase's rules.
        scores: Task to fold scores, for every task of the phase.
        eligible: Whether its team competes.
        climbed: Whether it beat its team's earlier value, if the Ladder selects; a baseline has no ladder.
    """
    if not stands(facts) or facts.submitted_at is None or facts.team_key is None:
        return None
    baseline = is_baseline(facts, rules)
    if facts.own and not baseline:
        return None  # a trial of the organizers, which EvalAI's leaderboard leaves out as well
    return Entry(
        submission=facts.submission,
        team_key=facts.team_key,
        team=facts.team or "",
        method=facts.method or "",
        submitted_at=facts.submitted_at,
        public=bool(facts.public),
        baseline=baseline,
        scores=dict(scores),
        eligible=eligible,
        climbed=climbed or baseline,
        content_hash=facts.content or "",
    )
