"""Intervals of differences in Q, against simulations with known truth and general properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leaderboard.ranking import TaskPair, compare
from scoring.metrics import quality

EPSILON = 0.02
FOLDS = 40


def pair(first: np.ndarray, second: np.ndarray, *, paired: bool = True, splits: str = "s") -> TaskPair:
    """Return two runs of a task."""
    return TaskPair(first=first, second=second, splits=(splits, splits), paired=paired)


def scores(
    random: np.random.Generator, *, shift: float = 0.0, shared: np.ndarray | None = None
) -> np.ndarray:
    """Return fold scores around 0.7; ``shared`` is added to both runs."""
    luck = np.zeros(FOLDS) if shared is None else shared
    return np.clip(0.7 + shift + luck + 0.01 * random.standard_normal(FOLDS), 0, 1)


def test_the_difference_is_between_the_quality_scores() -> None:
    """This holds for each task and for their mean, without failed folds."""
    random = np.random.default_rng(0)
    first, second = scores(random), scores(random, shift=-0.1)
    first[3] = second[7] = np.nan
    comparison = compare(
        [pair(first, second), pair(second, first, splits="t")], epsilon=EPSILON, replicates=200
    )
    expected = quality(second.tolist(), EPSILON).q - quality(first.tolist(), EPSILON).q
    assert [task.value for task in comparison.tasks] == pytest.approx([expected, -expected])
    assert comparison.overall.value == pytest.approx(0, abs=1e-9)
    assert (comparison.tasks[0].is_certain, comparison.overall.is_certain) == (True, False)


def test_a_run_compared_with_itself_has_no_difference() -> None:
    """A paired comparison is certain; an unpaired one cannot know that the runs are the same."""
    run = scores(np.random.default_rng(1))
    assert compare([pair(run, run)], epsilon=EPSILON).overall.interval == (0.0, 0.0)
    low, high = compare([pair(run, run, paired=False)], epsilon=EPSILON).overall.interval or (0.0, 0.0)
    assert low < 0 < high


def test_two_folds_are_too_few_for_an_interval() -> None:
    """A draw that varies has each of them once, so all replicates would be alike, and the interval a point."""
    pairs = [
        pair(np.array([0.7, 0.8]), np.array([0.5, 0.7]), splits=f"split {number}") for number in range(8)
    ]
    comparison = compare(pairs, epsilon=EPSILON)
    assert [each.interval for each in (*comparison.tasks, comparison.overall)] == [None] * 9


@pytest.mark.parametrize("paired", [True, False])
def test_folds_with_the_same_test_part_count_once(paired: bool) -> None:
    """The interval is about as wide as that of a mean score for each part, not as narrow as that of so many independent folds."""
    random = np.random.default_rng(2)
    runs = 0.7 + 0.02 * random.standard_normal((2, FOLDS // 4))
    parts = tuple(range(FOLDS // 4)) * 4
    every = np.tile(runs, 4) + 0.001 * random.standard_normal((2, FOLDS))

    def width(first: np.ndarray, second: np.ndarray, test_parts: tuple[int, ...] = ()) -> float:
        task = replace(pair(first, second, paired=paired), test_parts=(test_parts, test_parts))
        low, high = compare([task], epsilon=EPSILON).overall.interval or (0.0, 0.0)
        return high - low

    assert width(*every, parts) == pytest.approx(width(*runs), rel=0.2)
    assert width(*every) < 0.6 * width(*every, parts)
    assert (
        compare([replace(pair(*every), test_parts=((0,) * FOLDS,) * 2)], epsilon=EPSILON).overall.interval
        is None
    )


def test_files_that_disagree_about_the_splits_are_compared_apart() -> None:
    """Somebody may have edited a result file: tasks that name the same splits may then have other test parts."""
    random = np.random.default_rng(3)
    one, other = (pair(scores(random), scores(random)) for _ in range(2))
    parts = tuple(range(FOLDS // 2)) * 2
    edited = replace(other, test_parts=(parts, parts))
    together = compare([one, edited], epsilon=EPSILON, replicates=200)
    assert together.tasks[0] == compare([one], epsilon=EPSILON, replicates=200).tasks[0]
    assert together.tasks[1] == compare([edited], epsilon=EPSILON, replicates=200).tasks[0]


def test_another_run_may_be_ahead_with_other_tasks() -> None:
    """Of three tasks one decides; the share is that of the draws in which it outweighs the others, whatever their order."""
    low, high = np.full((2, 4), [[0.2], [0.3]])
    pairs = [pair(low, high), pair(low, high), pair(high + 0.6, low)]
    comparison = compare(pairs, epsilon=EPSILON, replicates=500)
    assert (comparison.overall.value < 0, comparison.depends_on) == (True, (2,))
    # the task that decides is drawn at least once: 1 - (2/3)³
    assert comparison.keeps_order == pytest.approx(19 / 27, abs=0.05)
    turned = compare(pairs[::-1], epsilon=EPSILON, replicates=500)
    assert (turned.depends_on, turned.keeps_order) == ((0,), comparison.keeps_order)
    assert comparison.sentence("abc").startswith("A is ahead of B, but not without c; it is ahead in ")
    for equal in ([pair(low, high)], [pair(low, high), pair(high, low)]):
        alone = compare(equal, epsilon=EPSILON, replicates=500)
        assert (alone.depends_on, alone.keeps_order, alone.sentence("ab")) == ((), None, "")


def test_hard_folds_cancel_only_in_a_paired_comparison() -> None:
    """Folds that are easy or hard for both runs make the interval wide, unless the comparison is paired."""
    random = np.random.default_rng(2)
    luck = 0.05 * random.standard_normal(FOLDS)
    first, second = scores(random, shared=luck), scores(random, shared=luck, shift=0.02)
    widths = []
    for paired in (True, False):
        low, high = compare([pair(first, second, paired=paired)], epsilon=EPSILON).overall.interval or (0, 0)
        widths.append(high - low)
    assert widths[0] < widths[1] / 2


def test_tasks_on_the_same_splits_are_drawn_together() -> None:
    """The same task twice is as uncertain as once; the mean of two tasks on different splits is less uncertain."""
    random = np.random.default_rng(3)
    first, second = scores(random), scores(random, shift=0.01)
    once = compare([pair(first, second)], epsilon=EPSILON)
    twice = compare([pair(first, second)] * 2, epsilon=EPSILON)
    apart = compare([pair(first, second), pair(first, second, splits="t")], epsilon=EPSILON)
    assert twice.overall.interval == pytest.approx(once.overall.interval)
    width = [high - low for low, high in (each.overall.interval or (0, 0) for each in (once, apart))]
    assert width[1] == pytest.approx(width[0] / np.sqrt(2), rel=0.25)


@pytest.mark.parametrize("paired", [True, False])
def test_95_percent_of_intervals_cover_the_truth(paired: bool) -> None:
    """In 300 simulations with known truth, about 95 % of the intervals contain it."""
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


@pytest.mark.parametrize("tasks", [[], [pair(np.array([np.nan]), np.array([0.5]))]])
def test_a_comparison_without_tasks_or_scores_is_refused(tasks: list[TaskPair]) -> None:
    """There is no task, or a run has no finite score on one."""
    with pytest.raises(ValueError, match="at least one task"):
        compare(tasks, epsilon=EPSILON)
