"""Numbers of submissions: what was moved to a team before it was first seen betrays itself, and an honest file never does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.evalai import Numbered, contradiction, could_be_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEAMS = (1, 2, 3)


@dataclass
class Row:
    """A submission at EvalAI: who sent it, with which team EvalAI shows it, and whether it was ever seen with another."""

    pk: int
    sender: int
    shown: int
    number: int
    made_at: datetime
    seen: int | None = None
    moved: bool = False
    deleted: bool = False
    rerun: bool = False


@dataclass
class World:
    """EvalAI's submissions to one phase, as the server numbers them, and what a worker that looks at them has seen."""

    rows: list[Row] = field(default_factory=list)
    now: datetime = NOON
    held: set[int] = field(default_factory=set)

    def next_number(self, team: int) -> int:
        """Return the highest number of the team, plus one; deleted ones count."""
        return 1 + max((row.number for row in self.rows if row.shown == team), default=0)

    def store(self, sender: int, number: int, team: int | None = None, *, rerun: bool = False) -> Row:
        """Store a new submission."""
        row = Row(len(self.rows), sender, sender if team is None else team, number, self.now, rerun=rerun)
        self.rows.append(row)
        return row

    def look(self, skipped: Callable[[Row], bool] = lambda row: False) -> None:
        """Read the phase's listing as the worker does, and judge what is new; some new ones are found only by the next look."""
        for row in self.rows:
            if row.seen is None and not skipped(row):
                row.seen = row.shown
            row.moved |= row.seen not in (None, row.shown)
        seen = [self.numbered(row) for row in self.rows if not row.deleted]
        for row in self.rows:
            if row.seen is not None and not row.rerun and contradiction(self.numbered(row), seen):
                self.held.add(row.pk)

    def numbered(self, row: Row) -> Numbered:
        """Return what a worker knows of a submission."""
        now = None if row.moved or row.shown != row.seen else row.seen
        return Numbered(pk=row.pk, team=row.seen, team_now=now, number=row.number, made_at=row.made_at)


EVENTS = st.tuples(
    st.sampled_from(["send", "slow", "several", "move", "back", "delete", "undelete", "rerun", "purge"]),
    st.sampled_from(TEAMS),
    st.integers(0, 30),
    st.integers(0, 90),
)


def play(world: World, what: str, team: int, which: int) -> None:
    """Let one thing happen: teams send, hosts re-run, strangers move and delete whatever they want, and administrators remove rows."""
    picked = world.rows[which % len(world.rows)] if world.rows else None
    if what == "send":
        world.store(team, world.next_number(team))
    elif what == "several":  # at the same moment
        numbers = [world.next_number(team)] * 3
        for number in numbers:
            world.store(team, number)
    elif what == "slow":  # another request of the team is faster
        number = world.next_number(team)
        world.store(team, number)
        world.now += timedelta(seconds=which % 30)
        world.store(team, world.next_number(team))
        world.store(team, number)
    elif picked is None or picked.seen is None:
        return
    elif what == "move":
        picked.shown = team
    elif what == "back":
        picked.shown = picked.seen
    elif what in ("delete", "undelete"):
        picked.deleted = what == "delete"
    elif what == "rerun":
        world.store(picked.sender, world.next_number(picked.shown), picked.shown, rerun=True)
    elif what == "purge":
        world.rows[picked.pk].shown, picked.deleted = 0, True


@given(st.lists(EVENTS, max_size=40), st.randoms(use_true_random=False))
def test_an_honest_file_is_never_held(events: list[tuple[str, int, int, int]], chance: object) -> None:
    """Whatever strangers do to submissions that were seen, and however EvalAI's requests overlap: no number betrays a file that is true.

    The worker looks after each event, but may find a new submission later than others.
    """
    world = World()
    for what, team, which, seconds in events:
        world.now += timedelta(seconds=seconds)
        play(world, what, team, which)
        world.look(skipped=lambda row: chance.random() < 0.3)  # type: ignore[attr-defined]
    world.look()
    assert world.held == set()


@given(st.lists(st.sampled_from(TEAMS), max_size=12), st.sampled_from(TEAMS), st.sampled_from(TEAMS))
def test_what_was_moved_to_a_rival_is_held_if_the_rival_had_its_number(
    sent: list[int], attacker: int, rival: int
) -> None:
    """Otherwise its number fits, or leaves a gap."""
    world = World()
    for team in sent:
        world.store(team, world.next_number(team))
        world.look()
        world.now += timedelta(minutes=1)
    had, own = world.next_number(rival) - 1, world.next_number(attacker)
    moved = world.store(attacker, own, rival)
    world.look()
    assert world.held == ({moved.pk} if attacker != rival and own <= had else set())
    if own > 1:
        found = could_be_of(world.numbered(moved), [world.numbered(row) for row in world.rows])
        assert (attacker in found) == (attacker != rival)


@pytest.mark.parametrize(("apart_s", "held"), [(0, False), (29, False), (30, True)])
def test_only_what_was_there_before_the_request_counts(apart_s: int, held: bool) -> None:
    """EvalAI counts at the beginning of a request, without a lock."""
    first, second = (
        Numbered(pk=pk, team=1, team_now=1, number=3, made_at=NOON + timedelta(seconds=pk * apart_s))
        for pk in (0, 1)
    )
    assert (contradiction(second, [first, second]) is not None) == held
