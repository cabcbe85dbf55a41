"""The place of every registered entry: exactly one of seven, in one word that boards, receipts, lists and verification share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leaderboard import PhaseRules, Selection
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
    NOWHERE = "nowhere"  # none of them, which contradicts what was published


LADDER, LATE, PRIVATE, UNPUBLISHED = "the Ladder", "after the close", "private", "made private"


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The place of an entry, and what decided it.

    Attributes:
        place: The place.
        facts: The facts that decided it.
        why: One of the constants above, or the organizers' reason; empty if the word says it all.
        by: The submission that counts instead, or that is its later run.
    """

    place: Place
    facts: SubmissionEvent
    why: str = ""
    by: int | None = None

    def __str__(self) -> str:
        """The word, with what decided it in parentheses."""
        why = self.why or (f"by {self.by}" if self.by else "")
        return f"{self.place} ({why})" if why else str(self.place)


def places(replay: PhaseReplay, moment: datetime) -> Mapping[str, Placed]:
    """Return the place of each entry whose facts are known at a moment; what was answered before the close has the place of the close."""
    closed = min(moment, replay.closed_at) if replay.closed_at else moment
    snapshot = replay.snapshot(closed)
    entries = {} if snapshot is None else {entry.submission: entry for entry in snapshot.entries}
    counting = (
        {} if snapshot is None else {row_key(row.entry): row.entry.submission for row in counted(snapshot)}
    )
    placed: dict[str, Placed] = {}
    for name, history in replay.submissions.items():
        then, facts = history.at(closed), history.at(moment)
        facts = then if then is not None and then.answered else facts
        if facts is None:
            continue
        rules, entry = replay.rules(closed), entries.get(facts.submission)
        by = None if entry is None else counting.get(row_key(entry))
        if by == facts.submission:
            placed[name] = Placed(place=Place.COUNTS, facts=facts)
        elif (off := taken_off(facts, rules)) is not None:
            placed[name] = off
        elif entry is not None and by is not None:
            ladder = rules is not None and rules.selection is Selection.LADDER and not entry.climbed
            place, why = (Place.NOT_COUNTED, LADDER) if ladder else (Place.REPLACED, "")
            placed[name] = Placed(place=place, facts=facts, why=why, by=by)
        elif replay.score(name, moment) is None:
            placed[name] = Placed(place=Place.OPEN, facts=facts)
        elif replay.answered_at[name] > closed:
            placed[name] = Placed(place=Place.NOT_COUNTED, facts=facts, why=LATE)
        else:
            placed[name] = Placed(place=Place.NOWHERE, facts=facts)
    return placed


def taken_off(facts: SubmissionEvent, rules: PhaseRules | None) -> Placed | None:
    """Return the place of an entry that its facts keep off the board; None if the board decides its place."""
    if facts.removed is not None:
        return Placed(place=Place.REMOVED, facts=facts, why=facts.removed)
    if facts.refused:
        return Placed(place=Place.REFUSED, facts=facts)
    if not facts.answered:
        place = Place.OPEN if facts.superseded_by is None else Place.REPLACED
        return Placed(place=place, facts=facts, by=facts.superseded_by)
    if facts.own and not (rules and membership.is_baseline(facts, rules)):
        return Placed(place=Place.TRIAL, facts=facts)
    if facts.public:
        return None
    if facts.public_at_first:
        return Placed(place=Place.REMOVED, facts=facts, why=UNPUBLISHED)
    return Placed(place=Place.NOT_COUNTED, facts=facts, why=PRIVATE)
