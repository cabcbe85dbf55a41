"""General properties and known answers of the dynamic rank."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.exchange.table import rank_table, read_table
from leaderboard.ranking.dynamic_rank import final_ranks, rank, task_ranks
from scoring.quality import quality, quality_of_moments

DATA = Path(__file__).parents[1] / "data"

# Quarters, so that deviations and sums have no rounding errors and ties are frequent.
tables = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 6)),
    elements=st.integers(-40, 400).map(lambda n: n / 4),
)


def independent(
    table: list[list[float]], weigh: list[bool] | None = None
) -> tuple[list[float], list[float], list[int]]:
    """Rank a table with loops and textbook formulas only: weights, weighted ranks, final ranks."""
    weigh = weigh or [True] * len(table)
    spreads, ranks = [], []
    for column in zip(*table, strict=True):
        inside = [q for q, w in zip(column, weigh, strict=True) if w]
        mean = sum(inside) / len(inside)
        spreads.append(math.sqrt(sum((q - mean) ** 2 for q in inside) / len(inside)))
        ranks.append([1 + len([other for other in inside if other > q]) for q in column])
    weights = [spread / sum(spreads) if sum(spreads) else 1 / len(spreads) for spread in spreads]
    scores = [
        round(sum(w * column[p] for w, column in zip(weights, ranks, strict=True)), 9)
        for p in range(len(table))
    ]
    return weights, scores, [1 + len([other for other in scores if other < score]) for score in scores]


@given(tables)
def test_agrees_with_loops(table: np.ndarray) -> None:
    """Weights, weighted ranks and ranks are those of the paper's formulas, written as plain loops."""
    weights, scores, ranks = independent(table.tolist())
    ranking = rank(table)
    assert ranking.weights == pytest.approx(weights, abs=1e-12)
    assert ranking.weighted_ranks == pytest.approx(scores, abs=2e-9)
    assert list(ranking.ranks) == ranks


@given(tables, st.randoms(use_true_random=False))
def test_team_order_does_not_matter(table: np.ndarray, random: object) -> None:
    """Shuffling the entries shuffles the standings and changes nothing else, to the last bit."""
    order = list(range(len(table)))
    random.shuffle(order)  # type: ignore[attr-defined]
    plain, shuffled = rank(table), rank(table[order])
    assert plain.weights == shuffled.weights
    assert [plain.ranks[i] for i in order] == list(shuffled.ranks)
    assert [plain.weighted_ranks[i] for i in order] == list(shuffled.weighted_ranks)
    assert [plain.means[i] for i in order] == list(shuffled.means)


@given(tables, st.randoms(use_true_random=False))
def test_task_order_does_not_matter(table: np.ndarray, random: object) -> None:
    """Shuffling the tasks changes no weighted rank, mean or rank."""
    order = list(range(table.shape[1]))
    random.shuffle(order)  # type: ignore[attr-defined]
    plain, shuffled = rank(table), rank(table[:, order])
    assert plain.ranks == shuffled.ranks
    assert plain.weighted_ranks == shuffled.weighted_ranks
    assert plain.means == shuffled.means


@given(tables, st.data())
def test_equal_scores_equal_ranks(table: np.ndarray, data: st.DataObject) -> None:
    """A copy of an entry shares its ranks and its weighted rank."""
    index = data.draw(st.integers(0, len(table) - 1))
    ranking = rank(np.vstack([table, table[index]]))
    assert ranking.ranks[index] == ranking.ranks[-1]
    assert ranking.ranks_by_mean[index] == ranking.ranks_by_mean[-1]
    assert ranking.weighted_ranks[index] == ranking.weighted_ranks[-1]


@given(tables, st.sampled_from([0.5, 2.0, 1024.0]), st.integers(-8, 8))
def test_scale_and_shift_change_no_rank(table: np.ndarray, scale: float, shift: int) -> None:
    """Ranks do not depend on the scale or the origin of the whole table."""
    plain, moved = rank(table), rank(table * scale + shift)
    assert plain.ranks == moved.ranks
    assert plain.weights == pytest.approx(moved.weights, abs=1e-9)


@given(tables, st.data())
def test_entries_outside_the_weights_change_nothing(table: np.ndarray, data: st.DataObject) -> None:
    """Entries outside the weights leave weights, weighted ranks and ranks of the others as they are."""
    outsiders = data.draw(
        npst.arrays(np.float64, (3, table.shape[1]), elements=st.integers(-40, 400).map(float))
    )
    both = np.vstack([table, outsiders])
    inside = np.arange(len(both)) < len(table)
    plain, joined = rank(table), rank(both, weighs=inside, numbered=inside)
    count = len(table)
    assert plain.weights == joined.weights
    assert plain.ranks == joined.ranks[:count]
    assert plain.ranks_by_mean == joined.ranks_by_mean[:count]
    assert plain.weighted_ranks == joined.weighted_ranks[:count]
    assert list(plain.order) == [index for index in joined.order if index < count]


@given(tables, st.data())
def test_an_entry_out_of_competition_ranks_like_its_twin_in_it(
    table: np.ndarray, data: st.DataObject
) -> None:
    """An entry out of competition gets the rank number of an entry in competition with the same scores."""
    index = data.draw(st.integers(0, len(table) - 1))
    inside = np.arange(len(table) + 1) < len(table)
    ranking = rank(np.vstack([table, table[index]]), weighs=inside, numbered=inside)
    assert ranking.ranks[-1] == ranking.ranks[index]
    assert ranking.task_ranks[-1] == ranking.task_ranks[index]


@given(tables, st.data())
def test_an_entry_that_dominates_another_does_not_rank_behind_it(
    table: np.ndarray, data: st.DataObject
) -> None:
    """An entry at least as good as another in every task does not rank behind it."""
    better, worse = data.draw(st.tuples(*[st.integers(0, len(table) - 1)] * 2))
    table[better] = np.maximum(table[better], table[worse])
    assert rank(table).ranks[better] <= rank(table).ranks[worse]


@given(tables, st.floats(1e-6, 100.0))
def test_ghost_task_only_dilutes(table: np.ndarray, ghost: float) -> None:
    """A ghost task scales every weight by Σ / (Σ + δ0) and keeps the order (paper Eq. 8)."""
    plain, diluted = rank(table), rank(table, ghost_task=ghost)
    spread = table.std(axis=0).sum() if (table.max(axis=0) > table.min(axis=0)).any() else 0.0
    expected = [w * spread / (spread + ghost) for w in plain.weights]
    assert diluted.weights == pytest.approx(expected, abs=1e-9)


def test_the_order_of_entries_with_equal_ranks() -> None:
    """Entries with equal weighted ranks are ordered teams first, then by mean, then by the given tie-break; no rank changes."""
    table = np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 3.0], [3.0, 1.0]])
    # By hand: spreads are equal, weights 1/2; ranks (2, 1) and (1, 4).
    ranking = rank(table, numbered=np.array([False, True, True, True]), tie_breaks=["a", "c", "b", "d"])
    assert ranking.weighted_ranks == (1.5, 1.5, 1.5, 2.5)
    assert ranking.order == (2, 1, 0, 3)
    assert ranking.ranks == (1, 1, 1, 3)
    means = np.array([[2.0, 0.0], [0.0, 2.5], [2.0, 0.0], [0.0, 2.5], [0.0, 0.0]])
    assert rank(means[[0, 1]], weighs=np.array([False, False])).order == (1, 0)


def test_without_any_spread_weights_are_uniform() -> None:
    """If every task scores all entries the same, all weights are equal, in spite of rounding errors of the means."""
    table = np.full((3, 4), 0.1)
    assert rank(table).weights == (0.25,) * 4
    assert rank(table, ghost_task=0.5).weights == (0.0,) * 4
    assert rank(table).ranks == (1, 1, 1)


def test_known_answer_by_hand() -> None:
    """Three entries, two tasks, everything worked out by hand."""
    # Task 1: 3, 2, 1 -> std √(2/3); task 2: 0, 0, 30 -> std 10√2. Weights 1 : 10√3.
    table = np.array([[3.0, 0.0], [2.0, 0.0], [1.0, 30.0]])
    ranking = rank(table)
    share = 1 / (1 + 10 * math.sqrt(3))
    assert ranking.weights == pytest.approx([share, 1 - share])
    assert ranking.task_ranks == ((1, 2), (2, 2), (3, 1))
    assert ranking.weighted_ranks == pytest.approx([2 - share, 2, 1 + 2 * share], abs=1e-9)
    assert ranking.ranks == (2, 3, 1)
    assert ranking.order == (2, 0, 1)
    assert ranking.means == (1.5, 1.0, 15.5)


def test_a_baseline_that_fails_a_task_inflates_its_weight() -> None:
    """A baseline that fails one task pulls weight to it, unless it is kept out of the weights (paper A.3)."""
    teams = [[30.0, 30.0], [31.0, 26.0], [29.0, 22.0]]
    table = np.array([*teams, [-70.0, 20.0]])
    outside = np.array([True, True, True, False])
    assert rank(table).weights[0] > 0.8
    assert rank(table, weighs=outside).weights[0] < 0.3


@pytest.mark.parametrize("table", [np.zeros((2, 0)), np.array([[1.0, np.nan]]), np.array([[np.inf]])])
def test_a_table_without_numbers_is_refused(table: np.ndarray) -> None:
    """A table without tasks, or with NaN or infinity, is refused."""
    with pytest.raises(ValueError, match="finite"):
        rank(table)


@given(
    npst.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 4)),
        elements=st.integers(-3, 3),
    ),
    st.data(),
)
def test_ranks_count_the_better_entries(tables: np.ndarray, data: st.DataObject) -> None:
    """A rank is one plus the number of numbered entries that are better, counted pair by pair, with ties and unnumbered entries."""
    inside = data.draw(npst.arrays(np.bool_, tables.shape[1]))
    better = tables[:, None, inside, :] > tables[:, :, None, :]
    assert np.array_equal(task_ranks(tables, inside), 1 + better.sum(axis=2))
    less = tables[:, None, inside, 0] < tables[:, :, None, 0]
    assert np.array_equal(final_ranks(tables[..., 0], inside), 1 + less.sum(axis=2))


def test_the_real_table_of_the_paper() -> None:
    """Table 4 of the paper ranks as an independent formula says; TerraMind leads every task, the averaging baseline ends every list."""
    text = (DATA / "neuco_bench_table4_r2.csv").read_text()
    lines = list(csv.reader(text.splitlines()))[1:]
    names, values = [line[0] for line in lines], [[float(cell) for cell in line[1:]] for line in lines]
    weights, scores, ranks = independent(values)
    ranking = rank_table(read_table(text))
    assert ranking.weights == pytest.approx(weights)
    assert ranking.weighted_ranks == pytest.approx(scores, abs=2e-9)
    assert list(ranking.ranks) == ranks
    assert names[ranking.order[0]] == "TerraMind (Post-Enc)"
    assert ranking.weighted_ranks[ranking.order[0]] == 1.0
    assert names[ranking.order[-1]] == "Averaging Baseline"
    assert ranking.weighted_ranks[ranking.order[-1]] == 18.0


def test_the_array_formula_is_the_quality_score() -> None:
    """The bootstrap's quality of moments is the scorer's quality of folds."""
    folds = [0.61, 0.58, 0.7, 0.66, -0.2]
    whole = quality(folds, 0.02)
    array = quality_of_moments(np.array([whole.mean]), np.array([whole.std]), 0.02)
    assert array.tolist() == [whole.q]
