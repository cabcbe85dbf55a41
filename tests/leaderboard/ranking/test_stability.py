"""Other tasks: laws, and how often what they say is true; the formulas are compared in tests/acceptance/test_protocol_page.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranking.dynamic_rank import rank
from leaderboard.ranking.stability import stability_sentence, task_stability
from leaderboard.snapshot import RowStability
from tests.leaderboard.ranking.test_ranking import tables

Rows = tuple[RowStability, ...]


def stability(table: np.ndarray, numbered: np.ndarray | None = None, **options: Any) -> Rows:
    """Return what becomes of the rows, for tasks 0, 1 and so on."""
    every = np.ones(len(table), bool)
    competing = every if numbered is None else numbered
    given_options: dict[str, Any] = {"tasks": [str(task) for task in range(table.shape[1])], "weighs": every}
    given_options |= {"phase": "dev", "replicates": 100, **options}
    return task_stability(table, numbered=competing, **given_options)


def agreement(tasks: int, runs: int, teams: int = 8, replicates: int = 400) -> dict[str, float]:
    """Return how often neighbors on a board are in the order that infinitely many tasks would give.

    Teams differ in skill, normally distributed; on each task, each of them deviates from it as much, and tasks differ in their spread. A
    share of at least 95 % for a pair is ``sure``; ``kept`` is a pair in the same order without any one of the tasks.

    Returns:
        The share of pairs of each kind, and under ``right when`` that of them whose order is right.
    """
    random = np.random.default_rng(tasks)
    found = []
    for run in range(runs):
        skill = random.standard_normal(teams)
        scale = np.exp(0.5 * random.standard_normal(tasks))
        table = scale * (skill[:, None] + random.standard_normal((teams, tasks)))
        order = list(rank(table).order)
        rows = stability(table[order], phase=f"run {run}", replicates=replicates)
        for row, below, right in zip(rows, rows[1:], -np.diff(skill[order]) > 0, strict=False):
            kept = all(row.without[task] < below.without[task] for task in row.without)
            found.append(((row.keeps_order or 0) >= 0.95, kept, right))
    sure, kept, right = np.array(found).T
    return {
        "sure": sure.mean(),
        "right when sure": right[sure].mean(),
        "kept": kept.mean(),
        "right when kept": right[kept].mean(),
    }


def test_a_share_of_95_percent_is_right_in_nearly_as_many_cases() -> None:
    """With nine tasks, neighbors that keep their order in 95 % of the replicates are in the true order in 90 to 98 % of the cases."""
    assert 0.90 <= agreement(9, 250)["right when sure"] <= 0.98


@given(tables, st.data())
def test_the_order_of_tasks_and_teams_does_not_matter(table: np.ndarray, data: st.DataObject) -> None:
    """Tasks are taken by their names, and teams only in the order of the board, which decides who is next."""
    rows, tasks = (list(data.draw(st.permutations(range(length)))) for length in table.shape)
    plain = stability(table)
    assert stability(table[:, tasks], tasks=[str(task) for task in tasks]) == plain
    shuffled = stability(table[rows])
    assert [(row.without, row.p_first) for row in shuffled] == [
        (plain[row].without, plain[row].p_first) for row in (rows if plain else ())
    ]


def test_equal_entries_stay_equal() -> None:
    """Two teams with equal scores keep their order and share ranks with any tasks; so do all, if no task separates anybody."""
    twins = stability(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [1.0, 0.0, 2.5]]))
    assert twins[0] == RowStability(without=twins[1].without, p_first=twins[1].p_first, keeps_order=1.0)
    nobody = RowStability(without={"0": 1, "1": 1}, p_first=1.0, keeps_order=1.0)
    assert stability(np.full((3, 2), 7.0))[:2] == (nobody, nobody)


def test_nothing_is_said_of_one_task_or_one_team() -> None:
    """No task can be left out of one, and one team is always first, also next to baselines."""
    assert stability(np.array([[1.0], [0.0]])) == ()
    assert stability(np.array([[1.0, 2.0]])) == ()
    assert stability(np.eye(3), numbered=np.array([True, False, False])) == ()
    assert stability_sentence([1], []) == ""


@pytest.mark.parametrize(
    ("without", "sentence"),
    [
        ("1234 1234 1234", "Without any one of the 3 tasks, no two teams change places."),
        (
            "1234 1243 1324",
            "Without any one of the 3 tasks, 1 stays 1; 2 and 3 change places without c, 3 and 4 without b.",
        ),
        (
            "1243 1243 1243 1234",
            "Without any one of the 4 tasks, 1 stays 1; 3 and 4 change places without a, b or c.",
        ),
        ("2134 2134 2134 2134", "Ranks 1 and 2 change places without any one of 4 tasks."),
        (
            "4123 1234",
            "Ranks 1 and 2 change places without a, 1 and 3 without a, 1 and 4 without a.",
        ),
        (
            "3412 1234",
            "Ranks 1 and 3 change places without a, 1 and 4 without a, 2 and 3 without a; 1 more pair as well.",
        ),
    ],
)
def test_the_sentence(without: str, sentence: str) -> None:
    """It says whether the first rank is safe, and names some pairs and tasks; rows without a rank number are not in it."""
    ranks = without.split()
    rows = [{"abcd"[task]: int(of[row]) for task, of in enumerate(ranks)} for row in range(4)]
    baseline = dict.fromkeys(rows[0], 4)
    assert stability_sentence([1, None, 2, 3, 4], [rows[0], baseline, *rows[1:]]) == sentence
