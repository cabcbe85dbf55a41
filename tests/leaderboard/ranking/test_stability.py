"""Stable views and their agreement, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from leaderboard.ranking.dynamic_rank import rank
from leaderboard.ranking.stability import borda, iqm, kendall_tau, leave_one_out, mean_rank, views

tables = npst.arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 9)), elements=st.integers(-5, 20).map(float)
)


def everyone(table: np.ndarray) -> np.ndarray:
    """Return flags that are all true."""
    return np.ones(len(table), bool)


@given(tables)
def test_mean_rank_is_scipys(table: np.ndarray) -> None:
    """Mean rank is the mean of scipy's min ranks."""
    expected = stats.rankdata(-table, method="min", axis=0).mean(axis=1)
    assert mean_rank(table, everyone(table)) == pytest.approx(expected)


@given(tables)
def test_borda_is_the_number_beaten(table: np.ndarray) -> None:
    """Borda points follow from scipy's average ranks, and their total does not depend on the scores."""
    entries, tasks = table.shape
    points = borda(table, everyone(table))
    assert points == pytest.approx((entries - stats.rankdata(-table, method="average", axis=0)).sum(axis=1))
    assert points.sum() == tasks * entries * (entries - 1) / 2


@given(tables)
def test_iqm_is_scipys_trimmed_mean(table: np.ndarray) -> None:
    """The interquartile mean is the 25 % trimmed mean, as rliable defines it."""
    assert iqm(table) == pytest.approx(stats.trim_mean(table, 0.25, axis=1))


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


@given(tables)
def test_flips_agree_with_a_ranking_without_the_entry(table: np.ndarray) -> None:
    """The listed pairs are those that are reversed in the official ranking of the remaining entries."""
    base = rank(table).ranks
    for left in leave_one_out(table, weighs=everyone(table), numbered=everyone(table)):
        rest = [index for index in range(len(table)) if index != left.entry]
        ranks = dict(zip(rest, rank(table[rest]).ranks, strict=True)) if rest else {}
        expected = {(a, b) for a in rest for b in rest if base[a] < base[b] and ranks[a] > ranks[b]}
        assert set(left.flips) == expected


def test_views_rank_teams_only_and_compare_with_the_official_order() -> None:
    """Baselines take no number in a stable view either; tau compares teams only."""
    table = np.array([[10.0, 10.0], [9.0, 9.0], [1.0, 1.0], [5.0, 5.0]])
    numbered = np.array([True, False, True, True])
    official = rank(table, numbered=numbered).ranks
    for view in views(table, weighs=everyone(table), numbered=numbered, official=official):
        assert view.ranks == (1, 2, 3, 2)
        assert view.tau == 1.0
