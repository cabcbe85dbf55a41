"""Hand out the folds of a submission's units in ranges.

A range is a fixed share of the remaining work, so ranges are long at first and short at the end. That keeps calls few, and all cores finish
at about the same time even if some are slower.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

PARTS_PER_CORE = 2  # a range is the remaining work divided by this many parts per core


@dataclass(frozen=True, kw_only=True)
class Range:
    """The folds of a unit from ``first`` up to, not including, ``last``."""

    unit: int
    first: int
    last: int

    @property
    def folds(self) -> int:
        """How many folds these are."""
        return self.last - self.first


@dataclass(kw_only=True)
class _Pile:
    """A unit with folds that have not been handed out yet."""

    unit: int
    handed_out: int
    folds: int
    cost: float  # of one fold

    @property
    def left(self) -> int:
        return self.folds - self.handed_out


@dataclass
class FoldScheduler:
    """The units that are known so far, in order, and their remaining folds.

    Attributes:
        units: How many units were added.
    """

    units: int = 0
    _piles: deque[_Pile] = field(default_factory=deque)
    _again: deque[Range] = field(default_factory=deque)

    @property
    def untouched(self) -> int:
        """How many units have folds that were never handed out."""
        return len(self._piles)

    def add(self, *, folds: int, cost: float) -> int:
        """Add another unit and return its number.

        Args:
            folds: Number of the unit's folds; at least one.
            cost: Cost of one of its folds, in any measure that all units share.
        """
        number, self.units = self.units, self.units + 1
        self._piles.append(_Pile(unit=number, handed_out=0, folds=folds, cost=cost))
        return number

    def next(self, cores: int) -> Range | None:
        """Return the next range for a free core: a lost one, or the next folds of the oldest unit; None if nothing is left.

        Args:
            cores: Number of cores of all machines together.
        """
        if self._again:
            return self._again.popleft()
        if not self._piles:
            return None
        pile = self._piles[0]
        left = sum(each.left * each.cost for each in self._piles)
        folds = int(left / (cores * PARTS_PER_CORE * pile.cost))
        handed_out = Range(
            unit=pile.unit, first=pile.handed_out, last=pile.handed_out + min(max(folds, 1), pile.left)
        )
        pile.handed_out = handed_out.last
        if not pile.left:
            self._piles.popleft()
        return handed_out

    def requeue(self, lost: Range) -> None:
        """Hand a lost range out again, before anything else."""
        self._again.append(lost)
