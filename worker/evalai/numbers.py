"""What the numbers of submissions show: EvalAI gives each new one the highest of its team in the phase, plus one, and nobody can write it.

A submission that is moved to another team keeps its number. So one that was moved before it was first read betrays itself, unless its
number happens to fit. But EvalAI counts without a lock, so two uploads at the same time get the same number, and others may take
submissions away from a team for a while. Neither may turn against an honest file. So what counts as evidence is only a submission that
was never seen away from its team, and was there before the request that made the new one began.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_REQUEST = timedelta(seconds=30)  # then the server in front of EvalAI ends it


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """A submission to a phase, with its number.

    Attributes:
        pk: The submission.
        team: The team with which it was seen first.
        team_now: The team with which EvalAI has shown it ever since; None if it was ever shown elsewhere, or not at all.
        number: Its number.
        made_at: When EvalAI stored it.
    """

    pk: int
    team: int | None
    team_now: int | None
    number: int
    made_at: datetime


def contradiction(new: Numbered, others: Iterable[Numbered]) -> Numbered | None:
    """Return a submission that shows that a new one was not sent for its team: it had the same number or a higher one before.

    Args:
        new: A submission that is not a re-run, because these may begin with another team.
        others: Submissions to the same phase.

    Returns:
        The one with the highest number; None if the number can be explained otherwise.
    """
    used = [
        other
        for other in others
        if new.team == other.team == other.team_now
        and other.pk < new.pk
        and other.number >= new.number
        and other.made_at <= new.made_at - LONGEST_REQUEST
    ]
    return max(used, key=lambda other: other.number, default=None)


def could_be_of(new: Numbered, others: Iterable[Numbered]) -> list[int]:
    """Return the other teams whose next number a new submission has, by what they sent before."""
    last: dict[int, int] = {}
    for other in others:
        if other.team not in (None, new.team) and other.pk < new.pk:
            last[other.team] = max(other.number, last.get(other.team, 0))
    return sorted(team for team, number in last.items() if number == new.number - 1)
