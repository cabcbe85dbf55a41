"""Who is on a board, by the registered facts about a submission, its scores and the phase's rules.

The worker makes its boards with these functions, and `verify` applies them to what was revealed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard import Entry
from worker.challenge.records import PhaseRules
from worker.fairness.events import QualifyingEvent, SubmissionFacts

PRIVATE = "it is private"


def taken_off(facts: SubmissionFacts | QualifyingEvent) -> str | None:
    """Return what takes a scored submission off the board; None if nothing does."""
    if facts.removed is not None:
        return f"it was disqualified ({facts.removed})"
    return next((sentence for fact, sentence in _TAKES_OFF.items() if getattr(facts, fact)), None)


def is_off_by_evalai(facts: SubmissionFacts) -> bool:
    """Return whether a submission is off the board because of what EvalAI says of it: its own team can have brought that about."""
    return facts.removed is None and taken_off(facts) is not None


_TAKES_OFF = {
    "deleted": "it was deleted at EvalAI",
    "cancelled": "it was canceled at EvalAI",
    "flagged": "it was flagged at EvalAI",
}


def kept_off(facts: SubmissionFacts, rules: PhaseRules) -> str | None:
    """Return what keeps a scored submission off the public board; None if nothing does.

    Hidden teams are not considered here; the selection leaves them out.
    """
    if (reason := taken_off(facts)) is not None:
        return reason
    if not facts.answered and facts.superseded_by is not None:
        return f"it was run again as submission {facts.superseded_by}"
    if not facts.answered:
        return "its answer was taken back"
    if facts.own and not is_baseline(facts, rules):
        return "it is taken for a trial of the organizers"
    return None if is_public(facts, rules) else PRIVATE


def stands(facts: SubmissionFacts | QualifyingEvent) -> bool:
    """Return whether EvalAI has a submission's answer, and nothing takes it off the board."""
    return facts.answered and taken_off(facts) is None


def is_baseline(facts: SubmissionFacts, rules: PhaseRules) -> bool:
    """Return whether a submission is a baseline: marked at EvalAI, or the organizers' own under a name that the rules list."""
    return bool(facts.baseline or (facts.own and facts.method in rules.baselines))


def is_public(facts: SubmissionFacts, rules: PhaseRules) -> bool:
    """Return whether a submission is public by the rules."""
    return bool(facts.public_now if rules.visibility == "current" else facts.public_at_first)


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
        # A participant's submission stays a row under the team's name, even if marked as a baseline at EvalAI.
        method=(facts.method or "") if facts.own or not baseline else "",
        submitted_at=facts.submitted_at,
        public=is_public(facts, rules),
        baseline=baseline,
        scores=dict(scores),
        eligible=eligible,
        climbed=climbed or baseline,
        content_hash=facts.content or "",
    )
