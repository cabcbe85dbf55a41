"""Comparisons: what is certain about a difference in Q, from simulations with known truth and from laws."""

from __future__ import annotations

import numpy as np
import pytest

from leaderboard.ranking import Comparison, TaskPair, compare
from scoring.quality import quality

EPSILON = 0.02
FOLDS = 40


def pair(first: np.ndarray, second: np.ndarray, *, paired: bool = True, splits: str = "s") -> TaskPair:
    """Two runs of a task."""
    return TaskPair(first=first, second=second, splits=(splits, splits), paired=paired)


def scores(
    random: np.random.Generator, *, shift: float = 0.0, shared: np.ndarray | None = None
) -> np.ndarray:
    """Fold scores around 0.7; what ``shared`` says of a fold holds for both runs."""
    luck = np.zeros(FOLDS) if shared is None else shared
    return np.clip(0.7 + shift + luck + 0.01 * random.standard_normal(FOLDS), 0, 1)


def test_the_difference_is_that_of_the_quality_scores() -> None:
    """Of each task and of their mean, failed folds left out."""
    random = np.random.default_rng(0)
    first, second = scores(random), scores(random, shift=-0.1)
    first[3] = second[7] = np.nan
    found = compare([pair(first, second), pair(second, first, splits="t")], epsilon=EPSILON, replicates=200)
    expected = quality(second.tolist(), EPSILON).q - quality(first.tolist(), EPSILON).q
    assert [one.value for one in found.tasks] == pytest.approx([expected, -expected])
    assert found.overall.value == pytest.approx(0, abs=1e-9)
    assert found.tasks[0].is_certain
    assert not found.overall.is_certain


def test_a_run_differs_from_itself_by_nothing() -> None:
    """For certain in pairs; unpaired, nobody knows that it is the same."""
    one = scores(np.random.default_rng(1))
    assert compare([pair(one, one)], epsilon=EPSILON).overall.interval == (0.0, 0.0)
    low, high = compare([pair(one, one, paired=False)], epsilon=EPSILON).overall.interval or (0.0, 0.0)
    assert low < 0 < high


def test_luck_that_both_have_cancels_in_pairs_only() -> None:
    """Easy and hard folds for both make the interval wide, unless they are compared in pairs."""
    random = np.random.default_rng(2)
    luck = 0.05 * random.standard_normal(FOLDS)
    first, second = scores(random, shared=luck), scores(random, shared=luck, shift=0.02)
    widths = []
    for paired in (True, False):
        low, high = compare([pair(first, second, paired=paired)], epsilon=EPSILON).overall.interval or (0, 0)
        widths.append(high - low)
    assert widths[0] < widths[1] / 2


def test_tasks_on_the_same_splits_are_drawn_together() -> None:
    """The same task twice is as uncertain as once; two tasks on other splits are less uncertain together."""
    random = np.random.default_rng(3)
    first, second = scores(random), scores(random, shift=0.01)
    once = compare([pair(first, second)], epsilon=EPSILON)
    twice = compare([pair(first, second)] * 2, epsilon=EPSILON)
    apart = compare([pair(first, second), pair(first, second, splits="t")], epsilon=EPSILON)
    assert twice.overall.interval == pytest.approx(once.overall.interval)
    width = [high - low for low, high in (one.overall.interval or (0, 0) for one in (once, apart))]
    assert width[1] == pytest.approx(width[0] / np.sqrt(2), rel=0.25)


@pytest.mark.parametrize("paired", [True, False])
def test_an_interval_covers_what_it_promises(paired: bool) -> None:
    """In simulations with known truth 95 % of the intervals hold it, within what 300 of them can tell."""
    random = np.random.default_rng(4)
    truth = 100 * EPSILON * (0.72 / (0.04 + EPSILON) - 0.70 / (0.05 + EPSILON))
    held = 0
    for _ in range(300):
        luck = random.standard_normal(FOLDS)
        first = 0.70 + 0.05 * luck
        second = 0.72 + 0.04 * (0.8 * luck + 0.6 * random.standard_normal(FOLDS))
        if not paired:
            first = 0.70 + 0.05 * random.standard_normal(FOLDS)
        low, high = compare(
            [pair(first, second, paired=paired)], epsilon=EPSILON, replicates=400
        ).overall.interval or (0, 0)
        held += low <= truth <= high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize("folds", [1, 2, 3])
def test_too_few_folds_tell_nothing(folds: int) -> None:
    """One fold has no spread; of two or three it depends, and never is an interval a number that is not finite."""
    random = np.random.default_rng(5)
    found: Comparison = compare([pair(random.random(folds), random.random(folds))], epsilon=EPSILON)
    assert folds > 1 or found.overall.interval is None
    assert found.overall.interval is None or np.isfinite(found.overall.interval).all()


@pytest.mark.parametrize("tasks", [[], [pair(np.array([np.nan]), np.array([0.5]))]])
def test_nothing_to_compare_is_refused(tasks: list[TaskPair]) -> None:
    """No task, or one that a run has failed in altogether."""
    with pytest.raises(ValueError, match="at least one task"):
        compare(tasks, epsilon=EPSILON)
