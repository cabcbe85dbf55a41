"""Which folds of a submission's units are still to be handed out, and in ranges of what size.

A range is a share of everything that is left, so ranges are long at first and short at the end: few calls, and all cores end together,
also when one is slower than another.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

PARTS_PER_CORE = 2  # a range is what is left, divided by so many times the cores


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
    """A unit of which folds were never handed out yet."""

    unit: int
    handed_out: int
    folds: int
    cost: float  # of one fold

    @property
    def left(self) -> int:
        return self.folds - self.handed_out


@dataclass
class FoldScheduler:
    """Units in their order, as far as they are known, and what of them is left.

    Attributes:
        units: How many were added.
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
            folds: Of the unit; at least one.
            cost: Of one of its folds, in any measure that all units share.
        """
        number, self.units = self.units, self.units + 1
        self._piles.append(_Pile(unit=number, handed_out=0, folds=folds, cost=cost))
        return number

    def next(self, cores: int) -> Range | None:
        """Return what a free core does next, None if everything was handed out: a lost range, or the next folds of the oldest unit.

        Args:
            cores: Of all machines together.
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
        """Let a range be handed out again, before anything else."""
        self._again.append(lost)
