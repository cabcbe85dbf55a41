"""The place of every registered entry: exactly one of seven, in one word that boards, receipts, lists and verification share."""

from __future__ import annotations

from collections.abc import Mapping
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


def places(replay: PhaseReplay, moment: datetime) -> Mapping[str, Place]:
    """Return the place of each entry whose facts are known at a moment; a closed board is that of its close."""
    snapshot = replay.snapshot(min(moment, replay.frozen_at) if replay.frozen_at else moment)
    entries = () if snapshot is None else snapshot.entries
    rows = {entry.submission: row_key(entry) for entry in entries}
    counting = (
        {} if snapshot is None else {row_key(row.entry): row.entry.submission for row in counted(snapshot)}
    )
    placed: dict[str, Place] = {}
    for entry, history in replay.submissions.items():
        facts = history.at(moment)
        if facts is None:
            continue
        by = counting.get(rows[facts.submission]) if facts.submission in rows else None
        placed[entry] = _taken_off(replay, facts, moment) or _on_the_board(replay, facts, moment, by)
    return placed


def _taken_off(replay: PhaseReplay, facts: SubmissionEvent, moment: datetime) -> Place | None:
    """Return the place that the facts alone decide; None if the board decides it."""
    rules = replay.rules(moment)
    if facts.removed is not None:
        return Place.REMOVED
    if facts.refused:
        return Place.REFUSED
    if not facts.answered:
        return Place.OPEN if facts.superseded_by is None else Place.REPLACED
    if facts.own and not (rules and membership.is_baseline(facts, rules)):
        return Place.TRIAL
    if facts.public:
        return None
    return Place.REMOVED if facts.public_at_first else Place.NOT_COUNTED


def _on_the_board(replay: PhaseReplay, facts: SubmissionEvent, moment: datetime, by: int | None) -> Place:
    """Return the place of a public, answered entry; ``by`` is the submission that counts for its row."""
    if by == facts.submission:
        return Place.COUNTS
    rules = replay.rules(moment)
    if by is not None:
        ladder = rules is not None and rules.selection is Selection.LADDER
        return Place.NOT_COUNTED if ladder else Place.REPLACED
    # Without a score on the present tasks it is open; otherwise the Ladder or the close keeps it off.
    return Place.OPEN if replay.score(facts.entry, moment) is None else Place.NOT_COUNTED
