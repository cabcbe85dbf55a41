"""General properties of the dynamic rank; its formulas are compared in tests/acceptance/test_protocol_page.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.ranking.dynamic_rank import rank

# Quarters, so that deviations and sums have no rounding errors and ties are frequent.
tables = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 6)),
    elements=st.integers(-40, 400).map(lambda n: n / 4),
)


@given(tables, st.data())
def test_the_order_of_entries_and_tasks_does_not_matter(table: np.ndarray, data: st.DataObject) -> None:
    """Shuffling the table shuffles the standings and changes nothing else, to the last bit."""
    entries, tasks = (list(data.draw(st.permutations(range(length)))) for length in table.shape)
    plain, shuffled = rank(table), rank(table[entries][:, tasks])
    assert [plain.weights[task] for task in tasks] == list(shuffled.weights)
    for name in ("ranks", "weighted_ranks", "means"):
        assert [getattr(plain, name)[entry] for entry in entries] == list(getattr(shuffled, name)), name


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


@pytest.mark.parametrize("table", [np.zeros((2, 0)), np.array([[1.0, np.nan]]), np.array([[np.inf]])])
def test_a_table_without_numbers_is_refused(table: np.ndarray) -> None:
    """A table without tasks, or with NaN or infinity, is refused."""
    with pytest.raises(ValueError, match="finite"):
        rank(table)
