"""The place of every registered entry: exactly one of seven, in one word that boards, receipts, lists and verification share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leaderboard import Selection
from leaderboard.ranking import counted, row_key
from worker.fairness import membership
from worker.fairness.events import SubmissionEvent
from worker.fairness.replay import PhaseReplay


class Place(StrEnum):
    """What became of an entry."""

    COUNTS = "counts"
    REPLACED = "replaced"  # by another submission of its team
    NOT_COUNTED = "not counted"  # because of the Ladder, the close, or because it is private
    REFUSED = "refused"
    REMOVED = "removed"  # by a decision of the organizers
    TRIAL = "trial"  # the organizers' own
    OPEN = "open"  # received or scored, and not answered


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The place of one entry.

    Attributes:
        place: Which of the places.
        why: Why, as a part of a sentence; empty if the place says everything.
        by: The submission that counts instead.
    """

    place: Place
    why: str = ""
    by: int | None = None


def places(replay: PhaseReplay, moment: datetime) -> Mapping[str, Placed]:
    """Return the place of each entry whose facts are known at a moment; a closed board is that of its close."""
    snapshot = replay.snapshot(min(moment, replay.frozen_at) if replay.frozen_at else moment)
    entries = () if snapshot is None else snapshot.entries
    rows = {entry.submission: row_key(entry) for entry in entries}
    counting = (
        {} if snapshot is None else {row_key(row.entry): row.entry.submission for row in counted(snapshot)}
    )
    placed: dict[str, Placed] = {}
    for entry, history in replay.submissions.items():
        facts = history.at(moment)
        if facts is None:
            continue
        by = counting.get(rows[facts.submission]) if facts.submission in rows else None
        placed[entry] = _taken_off(replay, facts, moment) or _on_the_board(replay, facts, moment, by)
    return placed


def _taken_off(replay: PhaseReplay, facts: SubmissionEvent, moment: datetime) -> Placed | None:
    """Return the place that the facts alone decide; None if the board decides it."""
    rules = replay.rules(moment)
    if facts.removed is not None:
        return Placed(place=Place.REMOVED, why=f"disqualified: {facts.removed}")
    if facts.refused:
        return Placed(place=Place.REFUSED)
    if not facts.answered and facts.superseded_by is not None:
        return Placed(place=Place.REPLACED, why="it was run again", by=facts.superseded_by)
    if not facts.answered:
        scored = facts.entry in replay.scores
        return Placed(place=Place.OPEN, why="scored, not answered" if scored else "received, not scored")
    if facts.own and not (rules and membership.is_baseline(facts, rules)):
        return Placed(place=Place.TRIAL)
    if facts.public_at_first and not facts.public:
        return Placed(place=Place.REMOVED, why="the organizers made it private")
    return None if facts.public else Placed(place=Place.NOT_COUNTED, why=membership.PRIVATE)


def _on_the_board(replay: PhaseReplay, facts: SubmissionEvent, moment: datetime, by: int | None) -> Placed:
    """Return the place of a public, answered entry."""
    if by == facts.submission:
        return Placed(place=Place.COUNTS)
    rules, entry, closed = replay.rules(moment), facts.entry, replay.frozen_at
    if by is not None:
        ladder = rules is not None and rules.selection is Selection.LADDER
        why = (
            "it did not exceed the team's value by the step" if ladder else "by the rules, another one counts"
        )
        return Placed(place=Place.NOT_COUNTED if ladder else Place.REPLACED, why=why, by=by)
    if replay.score(entry, moment) is None:
        return Placed(place=Place.OPEN, why="it has no score on the present tasks")
    if closed is not None and (
        replay.score(entry, closed) is None or not _answered_by(replay, entry, closed)
    ):
        return Placed(place=Place.NOT_COUNTED, why="the board had been closed")
    return Placed(place=Place.NOT_COUNTED, why="it did not exceed the team's value by the step")


def _answered_by(replay: PhaseReplay, entry: str, moment: datetime) -> bool:
    facts = replay.submissions[entry].at(moment)
    return facts is not None and facts.answered
