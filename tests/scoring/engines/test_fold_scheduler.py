"""Folds are handed out: each exactly once, long ranges first, and no range so long that a slow core would hold the others up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.engines.fold_scheduler import PARTS_PER_CORE, FoldScheduler, Range

UNITS = st.lists(st.tuples(st.integers(1, 300), st.floats(0.5, 50)), min_size=1, max_size=6)


def all_of(scheduler: FoldScheduler, cores: int) -> list[Range]:
    """Deal everything out."""
    return list(iter(lambda: scheduler.next(cores), None))


@given(units=UNITS, cores=st.integers(1, 64))
def test_every_fold_is_dealt_once_in_order(units: list[tuple[int, float]], cores: int) -> None:
    """Ranges follow each other without a gap, unit by unit."""
    scheduler = FoldScheduler()
    for folds, cost in units:
        scheduler.add(folds=folds, cost=cost)
    place = [0] * len(units)
    ranges = all_of(scheduler, cores)
    for part in ranges:
        assert part.first == place[part.unit]
        assert part.folds > 0
        place[part.unit] = part.last
    assert place == [folds for folds, _ in units]
    assert [part.unit for part in ranges] == sorted(part.unit for part in ranges)
    assert scheduler.untouched == 0


@given(units=UNITS, cores=st.integers(1, 64))
def test_no_range_is_more_than_its_share_of_what_is_left(units: list[tuple[int, float]], cores: int) -> None:
    """A core half as fast as the others holds nobody up for long; one fold is the least."""
    scheduler = FoldScheduler()
    for folds, cost in units:
        scheduler.add(folds=folds, cost=cost)
    left = sum(folds * cost for folds, cost in units)
    for part in all_of(scheduler, cores):
        cost = units[part.unit][1]
        assert part.folds == 1 or part.folds * cost <= left / (cores * PARTS_PER_CORE) + 1e-6
        left -= part.folds * cost


def test_what_is_lost_comes_first() -> None:
    """It is dealt out again whole, before anything new and after everything else was dealt."""
    scheduler = FoldScheduler()
    scheduler.add(folds=8, cost=1.0)
    first = scheduler.next(1)
    assert first == Range(unit=0, first=0, last=4)
    scheduler.requeue(first)
    assert scheduler.next(1) == first
    rest = all_of(scheduler, 1)
    scheduler.requeue(rest[0])
    assert all_of(scheduler, 1) == [rest[0]]


def test_a_following_unit_keeps_ranges_long() -> None:
    """Nothing is cut small at the end of a unit while another follows."""
    scheduler = FoldScheduler()
    scheduler.add(folds=200, cost=1.0)
    scheduler.add(folds=200, cost=1.0)
    assert [part.folds for part in (scheduler.next(2), scheduler.next(2), scheduler.next(2))] == [100, 75, 25]
