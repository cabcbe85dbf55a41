"""Which submissions become the rows of a board."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.ranking.selection import counted, waiting_teams
from leaderboard.snapshot import Selection
from tests.leaderboard.harness.phases import START, phase, steady


def chosen_pks(snapshot: object) -> list[int]:
    """Return the counted submissions."""
    return [contender.entry.submission for contender in counted(snapshot)]  # type: ignore[arg-type]


def test_last_is_the_latest_submission_time_not_the_highest_pk() -> None:
    """``last`` takes the greatest (submitted_at, pk)."""
    early = steady(9, 1, 10, submitted_at=START)
    late = steady(3, 1, 5, submitted_at=START + timedelta(hours=1))
    assert chosen_pks(phase(early, late)) == [3]
    assert chosen_pks(phase(early, replace(late, submitted_at=START))) == [9]


def test_best_is_the_highest_unrounded_mean_the_earlier_on_a_tie() -> None:
    """``best`` compares more digits than are printed."""
    entries = steady(1, 1, 10, 10), steady(2, 1, 10, 10.00001), steady(3, 1, 10.00001, 10)
    assert chosen_pks(phase(*entries, selection=Selection.BEST)) == [2]


def test_chosen_takes_the_named_submission_or_else_the_last() -> None:
    """The last submission counts for teams that the organizer named none for."""
    entries = steady(1, 1, 10), steady(2, 1, 20), steady(3, 2, 5), steady(4, 2, 6)
    assert chosen_pks(phase(*entries, selection=Selection.CHOSEN, chosen={1: 1})) == [1, 4]


def test_a_chosen_private_submission_does_not_appear() -> None:
    """Choosing a private submission does not publish it."""
    entries = steady(1, 1, 10, public=False), steady(2, 1, 20)
    assert chosen_pks(phase(*entries, selection=Selection.CHOSEN, chosen={1: 1})) == [2]


def test_private_hidden_and_incomplete_submissions_do_not_count() -> None:
    """A private one, a hidden team, a missing task and a task without a finite fold make no row and are not counted."""
    private = steady(5, 1, 99, 99, public=False)
    hidden = steady(6, 2, 99, 99, team="Hosts")
    missing = steady(7, 1, 99)
    failed = steady(8, 1, 99, 99)
    failed = replace(failed, scores={**failed.scores, "b": (math.nan, math.nan)})
    rows = counted(
        phase(steady(1, 1, 10, 10), private, hidden, missing, failed, hidden_teams=frozenset({"Hosts"}))
    )
    assert [(row.entry.submission, row.submissions) for row in rows] == [(1, 1)]


def test_a_baseline_is_no_team_that_waits() -> None:
    """Where values are not shown yet, the number of teams and their names leave out baselines."""
    ours = steady(1, 1, 10, team="Hosts", baseline=True)
    waiting = waiting_teams(phase(ours, steady(2, 2, 20, team="B"), steady(3, 3, 5, team="A")))
    assert [row.team for row in waiting] == ["A", "B"]


def test_a_row_with_one_failed_fold_still_counts() -> None:
    """A cell with at least one finite fold has a score."""
    entry = steady(1, 1, 10)
    assert chosen_pks(phase(replace(entry, scores={"a": (0.1, math.nan)}))) == [1]


def test_counts_and_dates_are_of_all_public_submissions() -> None:
    """A row has the number of all public submissions and the date of the last one, even if an earlier one counts."""
    entries = steady(1, 1, 30), steady(2, 1, 20), steady(3, 1, 10), steady(4, 1, 10, public=False)
    (row,) = counted(phase(*entries, selection=Selection.BEST))
    assert (row.entry.submission, row.submissions) == (1, 3)
    assert row.last_submitted_at == START + timedelta(hours=3)


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


def test_a_baseline_without_a_method_is_still_a_row_of_its_own() -> None:
    """EvalAI does not ask for a method name; the team's ordinary submission must not be taken for the baseline's."""
    assert chosen_pks(phase(steady(1, 1, 5, baseline=True, method=""), steady(2, 1, 9))) == [1, 2]


def test_an_empty_phase_has_no_rows() -> None:
    """A phase without entries or tasks has no contenders."""
    assert counted(phase()) == ()
    assert counted(replace(phase(steady(1, 1, 10)), row_sets={})) == ()


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
