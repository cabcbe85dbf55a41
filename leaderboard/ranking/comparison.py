"""Compare two runs by a bootstrap over folds, which is paired if both have the same splits.

A fold with a hard test part is hard for both runs. If labels and splits agree, the same folds are drawn for both, so this effect cancels.
If they do not, each run's folds are drawn independently, and the interval is wider. Tasks on the same splits are drawn together. Intervals
are studentized with Q's influence function, for the reasons in :mod:`leaderboard.ranking.uncertainty`. They cover the variation over random
splits, not over fresh data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.uncertainty import CONFIDENCE, REPLICATES
from scoring.quality import quality_of_moments

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskPair:
    """One task's fold scores in two runs.

    Attributes:
        first: K fold scores of the first run, NaN where a fold failed.
        second: Fold scores of the second run; also K if they are paired.
        splits: A name for the splits of each run; tasks with equal names share their splits.
        paired: Whether fold k tests the same rows with the same labels in both runs.
    """

    first: Floats
    second: Floats
    splits: tuple[str, str]
    paired: bool


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
    """Differences in Q for each task, in the order of the input, and for their mean."""

    tasks: tuple[Difference, ...]
    overall: Difference


def compare(tasks: Sequence[TaskPair], *, epsilon: float, replicates: int = REPLICATES) -> Comparison:
    """Compare two runs on their common tasks.

    Raises:
        ValueError: If there is no task, or one has no finite score in a run.
    """
    if not tasks or not all(
        np.isfinite(task.first).any() and np.isfinite(task.second).any() for task in tasks
    ):
        raise ValueError("a comparison needs at least one task, and a finite score of each run in every task")
    groups: dict[tuple[tuple[str, str], bool], list[int]] = {}
    for place, task in enumerate(tasks):
        groups.setdefault((task.splits, task.paired), []).append(place)
    found: dict[int, Difference] = {}
    observed, drawn = _Sum.nothing(1), _Sum.nothing(replicates)
    for members in groups.values():
        group = [tasks[place] for place in members]
        now, then = _group(group, None, epsilon), _group(group, _draws(group[0], replicates), epsilon)
        for place, one, many in zip(members, now.tasks, then.tasks, strict=True):
            found[place] = _difference(one, many, _fewest([tasks[place]]))
        observed, drawn = observed.plus(now.whole), drawn.plus(then.whole)
    number = len(tasks)
    overall = _difference(observed.over(number), drawn.over(number), _fewest(tasks))
    return Comparison(tasks=tuple(found[place] for place in range(number)), overall=overall)


@dataclass(frozen=True, kw_only=True)
class _Sum:
    """Differences in R replicates, and their squared standard errors."""

    value: Floats
    squared_error: Floats

    @classmethod
    def nothing(cls, replicates: int) -> _Sum:
        return cls(value=np.zeros(replicates), squared_error=np.zeros(replicates))

    def plus(self, other: _Sum) -> _Sum:
        """Add differences that were drawn independently."""
        return _Sum(value=self.value + other.value, squared_error=self.squared_error + other.squared_error)

    def over(self, number: int) -> _Sum:
        return _Sum(value=self.value / number, squared_error=self.squared_error / number**2)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Tasks on the same splits, each alone and all together."""

    tasks: tuple[_Sum, ...]
    whole: _Sum


def _draws(task: TaskPair, replicates: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the folds that each replicate draws from each run, R x K; they are the same if the runs are paired."""
    first = _drawn(f"first\0{task.splits[0]}", len(task.first), replicates)
    if task.paired:
        return first, first
    return first, _drawn(f"second\0{task.splits[1]}", len(task.second), replicates)


def _drawn(name: str, folds: int, replicates: int) -> NDArray[np.intp]:
    digest = hashlib.sha256(f"comparison 1\0{name}\0{folds}".encode()).digest()
    # RandomState, because its stream never changes; Generator's may change with NumPy.
    random = np.random.RandomState(np.frombuffer(digest, np.uint32))
    return random.randint(0, folds, size=(replicates, folds)).astype(np.intp)


def _group(
    tasks: Sequence[TaskPair], draws: tuple[NDArray[np.intp], NDArray[np.intp]] | None, epsilon: float
) -> _Group:
    first, second = draws or (np.arange(len(tasks[0].first))[None], np.arange(len(tasks[0].second))[None])
    each: list[_Sum] = []
    together: list[Floats] = []
    for task in tasks:
        before, influence = _quality(task.first[first], epsilon)
        after, other = _quality(task.second[second], epsilon)
        parts = [other - influence] if task.paired else [influence, other]
        each.append(_Sum(value=after - before, squared_error=_squared(parts)))
        together = [known + part for known, part in zip(together, parts, strict=True)] if together else parts
    value = np.sum([one.value for one in each], axis=0)
    return _Group(tasks=tuple(each), whole=_Sum(value=value, squared_error=_squared(together)))


def _squared(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.sum([np.vecdot(part, part) for part in parts], axis=0))


def _quality(scores: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return Q of R x K scores, and the influence of each fold on it (see ``uncertainty._squared_error``)."""
    finite = np.isfinite(scores)
    number = finite.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(finite, scores, 0.0).sum(axis=-1, keepdims=True) / number
        centered = np.where(finite, scores - mean, 0.0)
        variance = (centered**2).sum(axis=-1, keepdims=True) / number
        std = np.sqrt(variance)
        slope = 100.0 * epsilon / (std + epsilon)
        bend = np.where(std > 0, 50.0 * epsilon * mean / (std * (std + epsilon) ** 2), 0.0)
        influence = np.where(finite, slope * centered - bend * (centered**2 - variance), 0.0) / number
        quality = quality_of_moments(mean, std, epsilon)
    return quality[..., 0], influence


def _fewest(tasks: Sequence[TaskPair]) -> int:
    """Return the smallest number of finite folds."""
    return min(int(np.isfinite(run).sum()) for task in tasks for run in (task.first, task.second))


def _difference(observed: _Sum, drawn: _Sum, fewest: int) -> Difference:
    value, error = float(observed.value[0]), float(np.sqrt(observed.squared_error[0]))
    if fewest < 2:
        return Difference(value=value, interval=None)
    if error == 0.0:
        return Difference(value=value, interval=(value, value))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = (drawn.value - value) / np.sqrt(drawn.squared_error)
    usable = errors[np.isfinite(errors)]
    if len(usable) * 2 < len(errors):
        return Difference(value=value, interval=None)
    low, high = np.quantile(usable, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Difference(value=value, interval=(value - float(high) * error, value - float(low) * error))
