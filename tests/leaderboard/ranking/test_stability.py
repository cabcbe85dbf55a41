"""Agreement of the stable views, against scipy and by hand; their formulas are compared in tests/acceptance/test_protocol_page.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaderboard.ranking.dynamic_rank import kendall_tau, leave_one_out, rank, views


def everyone(table: np.ndarray) -> np.ndarray:
    """Return flags that are all true."""
    return np.ones(len(table), bool)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=12))
def test_kendall_is_scipys_tau_b(pairs: list[tuple[int, int]]) -> None:
    """Tau-b is scipy's, and None if one side is a single tie."""
    first, second = zip(*pairs, strict=True)
    tau = kendall_tau(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert tau is None
    else:
        assert tau == pytest.approx(stats.kendalltau(first, second).statistic)


def test_leaving_out_an_entry_can_reverse_a_pair() -> None:
    """A third entry that increases a task's weight decides the order of two others; without it their order reverses."""
    table = np.array([[10.0, 20.0], [11.0, 12.0], [-90.0, 16.0]])
    assert rank(table).ranks == (2, 1, 3)
    found = {
        left.entry: left.flips
        for left in leave_one_out(table, weighs=everyone(table), numbered=everyone(table))
    }
    assert found == {0: (), 1: (), 2: ((1, 0),)}


def test_views_rank_teams_only_and_compare_with_the_official_order() -> None:
    """Baselines take no number in a stable view either; tau compares teams only."""
    table = np.array([[10.0, 10.0], [9.0, 9.0], [1.0, 1.0], [5.0, 5.0]])
    numbered = np.array([True, False, True, True])
    official = rank(table, numbered=numbered).ranks
    for view in views(table, weighs=everyone(table), numbered=numbered, official=official):
        assert view.ranks == (1, 2, 3, 2)
        assert view.tau == 1.0
