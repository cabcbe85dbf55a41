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
from leaderboard.ranking.uncertainty import counted_draws, draws, studentized
from leaderboard.rules import REPLICATES
from scoring.metrics import quality_of_moments


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
    groups: dict[tuple[tuple[str, str], bool], list[int]] = {}
    for place, task in enumerate(tasks):
        groups.setdefault((task.splits, task.paired), []).append(place)
    differences: dict[int, Difference] = {}
    observed, drawn = np.zeros((2, 1)), np.zeros((2, replicates))
    for members in groups.values():
        group = [tasks[place] for place in members]
        now, then = _group(group, None, epsilon), _group(group, _draws(group[0], replicates), epsilon)
        for place, value, replicated in zip(members, now[:-1], then[:-1], strict=True):
            differences[place] = _difference(value, replicated, _fewest([tasks[place]]))
        # Groups are drawn independently, so their squared errors add up.
        observed, drawn = observed + now[-1], drawn + then[-1]
    number = len(tasks)
    scale = np.array([[number], [number**2]])
    depends_on, keeps_order = _other_tasks(
        np.array([differences[place].value for place in range(number)]), replicates
    )
    return Comparison(
        tasks=tuple(differences[place] for place in range(number)),
        overall=_difference(observed / scale, drawn / scale, _fewest(tasks)),
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


def _draws(task: TaskPair, replicates: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the folds that each replicate draws from each run, R x K; they are the same if the runs are paired."""

    def drawn(name: str, folds: int) -> NDArray[np.intp]:
        return draws(f"comparison 1\0{name}\0{folds}", folds, replicates)

    first = drawn(f"first\0{task.splits[0]}", len(task.first))
    return first, first if task.paired else drawn(f"second\0{task.splits[1]}", len(task.second))


def _group(
    tasks: Sequence[TaskPair], draws: tuple[NDArray[np.intp], NDArray[np.intp]] | None, epsilon: float
) -> list[Floats]:
    """Return R differences and their squared standard errors (2 x R) of tasks on the same splits: of each task, then of their sum."""
    first, second = draws or (np.arange(len(tasks[0].first))[None], np.arange(len(tasks[0].second))[None])
    sums: list[Floats] = []
    together: list[Floats] = []
    for task in tasks:
        before, influence = _quality(task.first[first], epsilon)
        after, other = _quality(task.second[second], epsilon)
        parts = [other - influence] if task.paired else [influence, other]
        sums.append(np.stack([after - before, _squared(parts)]))
        together = [total + part for total, part in zip(together, parts, strict=True)] if together else parts
    return [*sums, np.stack([np.sum([value for value, _ in sums], axis=0), _squared(together)])]


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


def _difference(observed: Floats, drawn: Floats, fewest: int) -> Difference:
    value, error = float(observed[0, 0]), float(np.sqrt(observed[1, 0]))
    return Difference(
        value=value, interval=studentized(value, error, drawn[0], np.sqrt(drawn[1]), fewest=fewest)
    )
