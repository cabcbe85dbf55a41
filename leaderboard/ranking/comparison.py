"""Compare two runs by a bootstrap over folds, which is paired if both have the same splits.

A fold with a hard test part is hard for both runs. If labels and splits agree, the same folds are drawn for both, so this effect cancels.
If they do not, each run's folds are drawn independently, and the interval is wider. Tasks on the same splits are drawn together. Intervals
are studentized with Q's influence function, for the reasons in :mod:`leaderboard.ranking.uncertainty`. They cover the variation over random
splits, not over fresh data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.dynamic_rank import DIGITS, Floats
from leaderboard.ranking.stability import one_of
from leaderboard.ranking.uncertainty import (
    RowSet,
    counted_draws,
    fold_moments,
    influence_coefficients,
    make_row_set,
    studentized,
)
from leaderboard.rules import REPLICATES


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskPair:
    """One task's fold scores in two runs.

    Attributes:
        first: K fold scores of the first run, NaN where a fold failed.
        second: Fold scores of the second run; also K if they are paired.
        splits: A name for the splits of each run; tasks with equal names share their splits.
        paired: Whether fold k tests the same rows with the same labels in both runs.
        test_parts: The number of each fold's test part in each run; empty if no two folds have the same one.
    """

    first: Floats
    second: Floats
    splits: tuple[str, str]
    paired: bool
    test_parts: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The second run's Q minus the first's, with the ends of its 95 % interval; None if there are too few folds."""

    value: float
    interval: tuple[float, float] | None

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Differences in Q for each task, in the order of the input, and for their mean; and what becomes of its sign with other tasks.

    Attributes:
        depends_on: The places of the tasks without which the other run has the higher mean, or both the same one.
        keeps_order: Share of the replicates that draw tasks in which the same run has the higher mean. None, like the places, for one task,
            and for runs with the same mean.
    """

    tasks: tuple[Difference, ...]
    overall: Difference
    depends_on: tuple[int, ...]
    keeps_order: float | None

    def sentence(self, tasks: Sequence[str], first: str = "A", second: str = "B") -> str:
        """Say whether the same run is ahead with other tasks; nothing if nothing is known."""
        if self.keeps_order is None:
            return ""
        ahead, behind = (second, first) if self.overall.value > 0 else (first, second)
        lost = one_of([tasks[place] for place in self.depends_on]) if self.depends_on else ""
        without = f"but not without {lost}" if lost else f"also without any one of the {len(tasks)} tasks"
        share = f"{100 * self.keeps_order:.0f} % of {REPLICATES:,} resamplings of the tasks"
        return f"{ahead} is ahead of {behind}, {without}; it is ahead in {share}."


def compare(tasks: Sequence[TaskPair], *, epsilon: float, replicates: int = REPLICATES) -> Comparison:
    """Compare two runs on their common tasks.

    Raises:
        ValueError: If there is no task, or one has no finite score in a run.
    """
    if not tasks or not all(
        np.isfinite(task.first).any() and np.isfinite(task.second).any() for task in tasks
    ):
        raise ValueError("a comparison needs at least one task, and a finite score of each run in every task")
    pairs = [_row_sets(task) for task in tasks]
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, task in enumerate(tasks):
        folds = task.first.size, task.second.size
        groups.setdefault((task.splits, task.paired, task.test_parts, folds), []).append(place)
    differences: dict[int, Difference] = {}
    observed, drawn = np.zeros((2, 1)), np.zeros((2, replicates))
    for members in groups.values():
        group = [pairs[place] for place in members]
        now, then = _group(group, 0, epsilon), _group(group, replicates, epsilon)
        for place, value, replicated in zip(members, now[:-1], then[:-1], strict=True):
            differences[place] = _difference(value, replicated, _fewest([pairs[place]]))
        # Groups are drawn independently, so their squared errors add up.
        observed, drawn = observed + now[-1], drawn + then[-1]
    number = len(tasks)
    scale = np.array([[number], [number**2]])
    depends_on, keeps_order = _other_tasks(
        np.array([differences[place].value for place in range(number)]), replicates
    )
    return Comparison(
        tasks=tuple(differences[place] for place in range(number)),
        overall=_difference(observed / scale, drawn / scale, _fewest(pairs)),
        depends_on=depends_on,
        keeps_order=keeps_order,
    )


def _other_tasks(differences: Floats, replicates: int) -> tuple[tuple[int, ...], float | None]:
    """Return without which tasks the sum of the differences has another sign, and the share of draws of tasks in which it has the same."""
    number = len(differences)

    def sign(counts: NDArray[np.generic]) -> Floats:
        # Sorted, because neither a sum nor the draws may depend on the order of the tasks.
        return np.asarray(np.sign(np.round((counts * np.sort(differences)).sum(axis=-1) / number, DIGITS)))

    now = sign(np.ones(number))
    if number < 2 or now == 0:
        return (), None
    left_out = sign(1 - np.eye(number))[np.argsort(np.argsort(differences))]
    drawn = counted_draws(f"task bootstrap 1\0\0{number}", number, replicates)
    return tuple(np.flatnonzero(left_out != now).tolist()), float((sign(drawn) == now).mean())


def _row_sets(task: TaskPair) -> list[RowSet]:
    """Return the fold scores of both runs as two entries of one row set if they are paired, else as one entry of each of two."""
    first, second = task.first[None], task.second[None]
    names = f"first\0{task.splits[0]}", f"second\0{task.splits[1]}"
    if task.paired:
        return [make_row_set(names[0], [0], [np.concatenate([first, second])], task.test_parts[0])]
    return [
        make_row_set(name, [0], [scores], parts)
        for name, scores, parts in zip(names, (first, second), task.test_parts, strict=True)
    ]


def _group(pairs: Sequence[list[RowSet]], replicates: int, epsilon: float) -> list[Floats]:
    """Return R differences and their squared standard errors (2 x R) of pairs on the same splits: of each one, then of their sum.

    Without replicates, the observed ones (R = 1).
    """
    sums: list[Floats] = []
    together: list[Floats] = []
    drawn: list[Floats] = []
    for row_sets in pairs:
        drawn = drawn or [_counts(row_set, replicates) for row_set in row_sets]
        moments = [fold_moments(*each) for each in zip(row_sets, drawn, strict=True)]
        quality = [of.quality(now, epsilon)[:, 0] for of, now in zip(row_sets, moments, strict=True)]
        influence = [
            np.matmul(influence_coefficients(of, now, epsilon), of.powers)
            for of, now in zip(row_sets, moments, strict=True)
        ]
        parts = [influence[0][1] - influence[0][0]] if len(row_sets) == 1 else [each[0] for each in influence]
        sums.append(np.stack([quality[-1][-1] - quality[0][0], _squared(parts, drawn)]))
        together = [total + part for total, part in zip(together, parts, strict=True)] if together else parts
    return [*sums, np.stack([np.sum([value for value, _ in sums], axis=0), _squared(together, drawn)])]


def _counts(row_set: RowSet, replicates: int) -> Floats:
    if not replicates:
        return np.ones((1, row_set.test_parts))
    return row_set.draw("comparison 1", replicates).astype(np.float64)


def _squared(parts: Sequence[Floats], drawn: Sequence[Floats]) -> Floats:
    return np.asarray(
        np.sum([np.vecdot(counts * part, part) for part, counts in zip(parts, drawn, strict=True)], axis=0)
    )


def _fewest(pairs: Sequence[list[RowSet]]) -> int:
    """Return the smallest number of test parts with a finite fold."""
    return min(int(row_set.fewest.min()) for row_sets in pairs for row_set in row_sets)


def _difference(observed: Floats, drawn: Floats, fewest: int) -> Difference:
    value, error = float(observed[0, 0]), float(np.sqrt(observed[1, 0]))
    return Difference(
        value=value, interval=studentized(value, error, drawn[0], np.sqrt(drawn[1]), fewest=fewest)
    )
