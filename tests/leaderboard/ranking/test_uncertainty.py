"""The figures of the bootstrap: their definition, and that their intervals are reliable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.ranking.uncertainty import FoldTable, _on_grid, bootstrap, standard_errors

EPSILON = 0.02


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
        names = tuple(f"rows {task}" for task in range(tasks))
        uncertainty = bootstrap(
            FoldTable(row_sets=names, folds=tuple(scores), seed=f"run {start}"),
            epsilon=EPSILON,
            weighs=np.ones(size, bool),
            numbered=np.ones(size, bool),
            replicates=replicates,
        )
        covered += sum(
            low <= true <= high
            for (low, high), true in zip(uncertainty.q_intervals, truth[part], strict=True)  # type: ignore[misc]
        )
    return covered / runs


@pytest.mark.parametrize(("folds", "tasks", "noise"), [(200, 3, 0.1), (40, 5, 0.02)])
def test_the_interval_covers_the_truth(folds: int, tasks: int, noise: float) -> None:
    """On independent folds with known truth the 95 % interval of mean Q covers it in 93-97 % of 500 runs."""
    assert 0.93 <= coverage(folds, tasks, noise) <= 0.97


def test_the_standard_error_is_the_deviation_over_repeated_draws() -> None:
    """The influence function gives the standard deviation of Q over fresh independent folds."""
    random = np.random.default_rng(11)
    scores = 0.6 + 0.05 * random.standard_normal((2000, 100))
    quality = 100 * EPSILON * scores.mean(axis=1) / (scores.std(axis=1) + EPSILON)
    table = FoldTable(row_sets=("rows",), folds=(scores,), seed="dev")
    errors = standard_errors(table, EPSILON)[:, 0]
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
