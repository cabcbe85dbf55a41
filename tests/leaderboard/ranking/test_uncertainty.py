"""The figures of the bootstrap: their definition, and that their intervals are reliable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.ranking.uncertainty import (
    FoldTable,
    _on_grid,
    bootstrap,
    standard_errors,
    tie_groups,
)

EPSILON = 0.02


def table(*tasks: np.ndarray, row_sets: tuple[str, ...] | None = None, seed: str = "dev") -> FoldTable:
    """Return a table, with each task on its own row set by default."""
    names = row_sets or tuple(f"rows {index}" for index in range(len(tasks)))
    return FoldTable(row_sets=names, folds=tasks, seed=seed)


def run(of: FoldTable, **facts: object) -> object:
    """Bootstrap; by default all entries weigh and are numbered."""
    entries = len(of.folds[0])
    values = {"weighs": np.ones(entries, bool), "numbered": np.ones(entries, bool), "replicates": 200}
    return bootstrap(of, epsilon=EPSILON, **(values | facts))  # type: ignore[arg-type]


def noisy(
    random: np.random.Generator, means: list[float], folds: int = 40, noise: float = 0.03
) -> np.ndarray:
    """Return entries x folds scores around the given means."""
    return np.asarray(means)[:, None] + noise * random.standard_normal((len(means), folds))


def test_few_folds_give_finite_intervals() -> None:
    """Four folds, some failed, give finite intervals around mean Q, or none where one fold is left."""
    random = np.random.default_rng(7)
    tasks = [noisy(random, [0.5, 0.6, 0.4], 4) for _ in range(3)]
    tasks[0][1, 0] = np.nan
    luck = run(table(*tasks))
    assert all(low < high for low, high in luck.q_intervals)  # type: ignore[attr-defined]
    assert np.isfinite(luck.q_intervals).all()  # type: ignore[attr-defined]
    tasks[0][2, 1:] = np.nan
    assert run(table(*tasks)).q_intervals[2] is None  # type: ignore[attr-defined]
    single = run(table(np.array([[0.5], [0.4]])))
    assert single.q_intervals == (None, None)  # type: ignore[attr-defined]
    assert single.p_first == (1.0, 0.0)  # type: ignore[attr-defined]


def test_mismatched_folds_are_refused() -> None:
    """Tasks on one row set have one number of folds; a cell without any finite fold cannot be resampled."""
    with pytest.raises(ValueError, match="number of folds"):
        run(table(np.zeros((1, 3)), np.zeros((1, 4)), row_sets=("x", "x")))
    with pytest.raises(ValueError, match="finite"):
        run(table(np.full((1, 3), np.nan)))
    with pytest.raises(ValueError, match="at least one task"):
        bootstrap(table(), epsilon=EPSILON, weighs=np.ones(1, bool), numbered=np.ones(1, bool))


def coverage(folds: int, tasks: int, noise: float, runs: int = 500, replicates: int = 300) -> float:
    """Return the share of simulated runs whose interval covers the true mean Q.

    One run is one entry. A single bootstrap computes several, because they share only the fold indices.
    """
    random = np.random.default_rng(folds * 1000 + tasks)
    means = random.uniform(0.2, 0.9, (tasks, runs, 1))
    spreads = noise * random.uniform(0.5, 1.5, (tasks, runs, 1))
    truth = (100 * EPSILON * means / (spreads + EPSILON))[..., 0].mean(axis=0)
    covered = 0
    # Few runs per bootstrap, each with another seed, because shared indices correlate the runs.
    size = 10
    for start in range(0, runs, size):
        part = slice(start, start + size)
        scores = [
            mean[part] + spread[part] * random.standard_normal((size, folds))
            for mean, spread in zip(means, spreads, strict=True)
        ]
        luck = run(table(*scores, seed=f"run {start}"), replicates=replicates)
        covered += sum(
            low <= true <= high
            for (low, high), true in zip(luck.q_intervals, truth[part], strict=True)  # type: ignore[attr-defined]
        )
    return covered / runs


@pytest.mark.parametrize(("folds", "tasks", "noise"), [(200, 9, 0.03), (200, 3, 0.1), (40, 5, 0.02)])
def test_the_interval_covers_the_truth(folds: int, tasks: int, noise: float) -> None:
    """On independent folds with known truth the 95 % interval of mean Q covers it in 93-97 % of 500 runs."""
    assert 0.93 <= coverage(folds, tasks, noise) <= 0.97


def test_the_standard_error_is_the_deviation_over_repeated_draws() -> None:
    """The influence function gives the standard deviation of Q over fresh independent folds."""
    random = np.random.default_rng(11)
    scores = noisy(random, [0.6] * 2000, 100, 0.05)
    quality = 100 * EPSILON * scores.mean(axis=1) / (scores.std(axis=1) + EPSILON)
    errors = standard_errors(table(scores), EPSILON)[:, 0]
    assert np.median(errors) == pytest.approx(quality.std(), rel=0.1)


@given(
    npst.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3, allow_subnormal=False)),
    st.randoms(use_true_random=False),
)
def test_sums_on_the_grid_are_exact(values: np.ndarray, random: object) -> None:
    """Sums of counted grid values are never rounded, in any order, and the values were hardly changed by the grid."""
    grid = _on_grid(values[None])[0]
    picked = [random.randrange(len(grid)) for _ in grid]  # type: ignore[attr-defined]
    counts = np.bincount(picked, minlength=len(grid))
    exact = math.fsum(grid[picked])
    order = list(range(len(grid)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert float(counts @ grid) == sum((counts * grid)[order].tolist()) == exact
    assert np.abs(grid - values).max() <= np.abs(values).max() * len(values) * 2.0**-52


def test_unnumbered_entries_open_no_group_for_teams() -> None:
    """A baseline between two teams does not change the teams' groups."""
    beats = np.zeros((4, 4))
    beats[0] = [0, 0.99, 0.5, 0.99]
    assert tie_groups(range(4), [True, False, True, True], beats) == {0: 1, 1: 2, 2: 1, 3: 2}
    assert tie_groups([1, 0], [True, False], np.zeros((2, 2))) == {1: 1, 0: 1}
