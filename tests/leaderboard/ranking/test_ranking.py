"""General properties and known answers of the dynamic rank."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.ranking.dynamic_rank import rank

DATA = Path(__file__).parents[1] / "data"

# Quarters, so that deviations and sums have no rounding errors and ties are frequent.
tables = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 6)),
    elements=st.integers(-40, 400).map(lambda n: n / 4),
)


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
