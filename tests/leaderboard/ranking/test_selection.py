"""Which submissions become the rows of a board."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.ranking.assessment import counted, waiting_teams
from leaderboard.rules import Selection
from leaderboard.snapshot import Entry
from tests.leaderboard.harness.phases import START, phase, steady

EARLY = steady(9, 1, 10, submitted_at=START)
LATE = steady(3, 1, 5, submitted_at=START + timedelta(hours=1))
FOUR = (steady(1, 1, 10), steady(2, 1, 20), steady(3, 2, 5), steady(4, 2, 6))
BEST = {"selection": Selection.BEST}


@pytest.mark.parametrize(
    ("entries", "rules", "expected"),
    [
        ((EARLY, LATE), {}, [3]),
        ((EARLY, replace(LATE, submitted_at=START)), {}, [9]),
        ((steady(1, 1, 10, 10), steady(2, 1, 10, 10.00001), steady(3, 1, 10.00001, 10)), BEST, [2]),
        (FOUR, {}, [2, 4]),
        ((replace(FOUR[0], scores={"a": (0.1, math.nan)}),), {}, [1]),
        ((steady(1, 1, 5, baseline=True, method=""), steady(2, 1, 9)), {}, [1, 2]),
        ((), {}, []),
    ],
)
def test_which_submission_counts(
    entries: Sequence[Entry], rules: dict[str, object], expected: list[int]
) -> None:
    """The last by time, then number; or the best by its unrounded mean Q, the earlier on a tie."""
    assert [row.entry.submission for row in counted(phase(*entries, **rules))] == expected


def test_private_and_incomplete_submissions_do_not_count() -> None:
    """A private one, a missing task and a task without a finite fold make no row and are not counted."""
    private = steady(5, 1, 99, 99, public=False)
    missing = steady(7, 1, 99)
    failed = steady(8, 1, 99, 99)
    failed = replace(failed, scores={**failed.scores, "b": (math.nan, math.nan)})
    older = steady(0, 1, 5, 5)
    rows = counted(phase(steady(1, 1, 10, 10), older, private, missing, failed))
    assert [(row.entry.submission, row.submissions) for row in rows] == [(1, 2)]
    assert rows[0].last_submitted_at == START + timedelta(hours=1)


def test_a_baseline_is_no_team_that_waits() -> None:
    """Where values are not shown yet, the number of teams and their names leave out baselines."""
    ours = steady(1, 1, 10, team="Hosts", baseline=True)
    waiting = waiting_teams(phase(ours, steady(2, 2, 20, team="B"), steady(3, 3, 5, team="A")))
    assert [row.team for row in waiting] == ["A", "B"]


def test_a_host_team_shows_each_of_its_baselines() -> None:
    """Baselines of one team are rows of their own, named by method, a single one too; its ordinary submissions are another row."""
    entries = (
        steady(1, 1, 5, baseline=True, method="mean"),
        steady(2, 1, 1, baseline=True, method="random"),
        steady(3, 1, 6, baseline=True, method="mean"),
        steady(4, 1, 9),
        steady(5, 2, 3, baseline=True, method="pooled"),
    )
    rows = counted(phase(*entries))
    assert [(row.entry.submission, row.name) for row in rows] == [
        (2, "random"),
        (3, "mean"),
        (4, "Team 1"),
        (5, "pooled"),
    ]
    assert len({row.key for row in rows}) == 4


@pytest.mark.parametrize("weigh", [True, False])
def test_teams_compete_and_weigh_and_baselines_weigh_by_rule(weigh: bool) -> None:
    """Teams in competition do both, baselines weigh by rule, teams out of competition do neither."""
    snapshot = phase(
        steady(1, 1, 3),
        steady(2, 2, 2, baseline=True),
        steady(3, 3, 1, eligible=False),
        baselines_weigh=weigh,
    )
    rows = counted(snapshot)
    assert [row.numbered for row in rows] == [True, False, False]
    assert [row.weighs(snapshot.rules) for row in rows] == [True, weigh, False]
