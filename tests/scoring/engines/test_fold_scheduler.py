"""Folds are handed out exactly once, in ranges that begin long and are never so long that others wait for a slow core."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.engines.fold_scheduler import PARTS_PER_CORE, FoldScheduler, Range

UNITS = st.lists(st.tuples(st.integers(1, 300), st.floats(0.5, 50)), min_size=1, max_size=6)


def all_of(scheduler: FoldScheduler, cores: int) -> list[Range]:
    """Hand everything out."""
    return list(iter(lambda: scheduler.next(cores), None))


@given(units=UNITS, cores=st.integers(1, 64))
def test_every_fold_is_handed_out_once_in_order(units: list[tuple[int, float]], cores: int) -> None:
    """Ranges have no gaps, unit by unit."""
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
def test_no_range_is_larger_than_its_share_of_the_rest(units: list[tuple[int, float]], cores: int) -> None:
    """So the others never wait long for a core that is half as fast; the smallest range is one fold."""
    scheduler = FoldScheduler()
    for folds, cost in units:
        scheduler.add(folds=folds, cost=cost)
    left = sum(folds * cost for folds, cost in units)
    for part in all_of(scheduler, cores):
        cost = units[part.unit][1]
        assert part.folds == 1 or part.folds * cost <= left / (cores * PARTS_PER_CORE) + 1e-6
        left -= part.folds * cost


def test_a_lost_range_is_handed_out_first() -> None:
    """The whole range is handed out again before any new one, even if everything else was handed out."""
    scheduler = FoldScheduler()
    scheduler.add(folds=8, cost=1.0)
    first = scheduler.next(1)
    assert first == Range(unit=0, first=0, last=4)
    scheduler.requeue(first)
    assert scheduler.next(1) == first
    rest = all_of(scheduler, 1)
    scheduler.requeue(rest[0])
    assert all_of(scheduler, 1) == [rest[0]]


def test_ranges_stay_long_while_another_unit_follows() -> None:
    """Ranges become short only at the end of the last unit."""
    scheduler = FoldScheduler()
    scheduler.add(folds=200, cost=1.0)
    scheduler.add(folds=200, cost=1.0)
    assert [part.folds for part in (scheduler.next(2), scheduler.next(2), scheduler.next(2))] == [100, 75, 25]
