"""The fold gives the board of any moment, and computes nothing again that has not changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from leaderboard import Entry, PhaseSnapshot
from tests.benchmarks.long_challenge import START, Size, events_of, record_of
from worker.fairness.events import parse
from worker.fairness.fold import ChallengeFold

SIZE = Size(versions=3, teams=2, tasks=2, folds=4)


def entries(snapshot: PhaseSnapshot | None) -> dict[int, Entry]:
    """Return the entries of a snapshot by submission."""
    assert snapshot is not None
    return {entry.submission: entry for entry in snapshot.entries}


def test_an_entry_is_computed_again_only_after_a_change() -> None:
    """A long challenge has thousands of boards of thousands of entries, but each board changes only one of them."""
    record = record_of(SIZE)
    happened: list[dict[str, Any]] = [fields for hour in events_of(record, SIZE) for fields in hour]
    last = happened[-1]
    removed = {**last, "at": (START + timedelta(hours=5)).isoformat(), "flagged": True}
    renamed = {**happened[4], "at": (START + timedelta(hours=6)).isoformat(), "team": "Another name"}
    fold = ChallengeFold(map(parse, [*happened, removed, renamed]))

    def at(hours: float) -> dict[int, Entry]:
        moment = START + timedelta(hours=hours)
        return entries(fold.phase("dev").snapshot(moment))

    first, second, third = at(1.5), at(2.5), at(3.5)
    assert [list(one) for one in (first, second, third)] == [[1], [1, 2], [1, 2, 3]]
    assert first[1] is second[1] is third[1]
    assert second[2] is third[2]
    assert list(at(5.5)) == [1, 2]
    later = at(6.5)
    assert later[2] is third[2]
    assert (later[1].team, later[1].scores) == ("Another name", third[1].scores)
    assert at(1.5) == first
