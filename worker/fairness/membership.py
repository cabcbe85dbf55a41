"""Who is on a board: what the registered facts about a submission, its scores and the phase's rules come to.

The worker makes its boards with these functions, and `verify` applies them to what was revealed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from leaderboard import Entry
from worker.challenge.records import PhaseRules
from worker.fairness.events import PUBLIC_FIELDS

Facts = Mapping[str, Any]
"""Of a submission, as :func:`worker.fairness.register.submission_facts` has them."""


PRIVATE = "it is private"

QUALIFYING_FIELDS = (*PUBLIC_FIELDS, "team_key", "answered", "removed", "deleted", "cancelled", "flagged")
"""What is opened of a private submission that lets its team compete in another phase."""


def taken_off(facts: Facts) -> str | None:
    """Return what takes a scored submission off the board, None if nothing does."""
    if facts["removed"] is not None:
        return f"it was disqualified ({facts['removed']})"
    for fact, sentence in _TAKES_OFF.items():
        if facts[fact]:
            return sentence
    return None


def is_its_owners(facts: Facts) -> bool:
    """Return whether a submission may be off the board because of its own team, which can delete and cancel it at EvalAI."""
    return facts["removed"] is None and not facts["flagged"] and bool(facts["deleted"] or facts["cancelled"])


_TAKES_OFF = {
    "deleted": "it was deleted at EvalAI",
    "cancelled": "it was canceled at EvalAI",
    "flagged": "it was flagged at EvalAI",
}


def kept_off(facts: Facts, rules: PhaseRules) -> str | None:
    """Return what keeps a scored submission off the public board, None if nothing does; hidden teams are a matter of the rules."""
    if (reason := taken_off(facts)) is not None:
        return reason
    if not facts["answered"] and facts["superseded_by"] is not None:
        return f"it was run again as submission {facts['superseded_by']}"
    if not facts["answered"]:
        return "its answer was taken back"
    if facts["own"] and not is_baseline(facts, rules):
        return "it is taken for a trial of the organizers"
    return None if is_public(facts, rules) else PRIVATE


def stands(facts: Facts) -> bool:
    """Return whether EvalAI has a submission's answer and nothing takes it off the board."""
    return bool(facts["answered"]) and taken_off(facts) is None


def is_baseline(facts: Facts, rules: PhaseRules) -> bool:
    """Return whether a submission is a baseline: marked at EvalAI, or the organizers' own under a name that the rules list."""
    return bool(facts["baseline"] or (facts["own"] and facts["method"] in rules.baselines))


def is_public(facts: Facts, rules: PhaseRules) -> bool:
    """Return whether a submission is public in the sense of the rules."""
    return bool(facts["public_now"] if rules.visibility == "current" else facts["public_at_first"])


def entry(
    facts: Facts,
    rules: PhaseRules,
    scores: Mapping[str, Sequence[float]],
    *,
    eligible: bool,
    climbed: bool = True,
    seconds: float = 0.0,
    engines: frozenset[str] = frozenset(),
) -> Entry | None:
    """Return the entry that a submission makes; None if it is on no board, whatever its score.

    Args:
        facts: Of the submission.
        rules: The phase's.
        scores: Task to fold scores, of every task of the phase.
        eligible: Whether its team competes.
        climbed: Whether it beat its team's standing value, where the Ladder selects; a baseline has no ladder.
        seconds: What scoring it cost, for the private report.
        engines: What trained its probes.
    """
    if not stands(facts) or facts["submitted_at"] is None or facts["team_key"] is None:
        return None
    baseline = is_baseline(facts, rules)
    if facts["own"] and not baseline:
        return None  # a trial of the organizers, which EvalAI's leaderboard leaves out too
    return Entry(
        submission=facts["submission"],
        team_key=facts["team_key"],
        team=facts["team"] or "",
        # A participant's stays one row under the team's name, even if marked at EvalAI.
        method=(facts["method"] or "") if facts["own"] or not baseline else "",
        submitted_at=datetime.fromisoformat(facts["submitted_at"]),
        public=is_public(facts, rules),
        baseline=baseline,
        scores=dict(scores),
        eligible=eligible,
        climbed=climbed or baseline,
        content_hash=facts["content"] or "",
        seconds=seconds,
        engines=engines,
    )
