"""When there is a next board, what it contains, and how rows moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.ranking.board import from_json, next_board, to_json
from leaderboard.rendering import public_rows
from leaderboard.report.private_report import awards
from leaderboard.snapshot import Board, Entry, MoveKind, PhaseSnapshot, Rules, Selection
from scoring.errors import OrganizerError
from tests.leaderboard.harness.phases import START, entry, phase, steady

AT = START + timedelta(days=10)


def board(snapshot: PhaseSnapshot, *history: Board, at: datetime = AT) -> Board | None:
    """Make the next board with few replicates."""
    return next_board(snapshot, history, at=at, replicates=100)


def made(snapshot: PhaseSnapshot, *history: Board) -> Board:
    """Make the next board, and check that there is one."""
    result = board(snapshot, *history)
    if result is None:
        pytest.fail("there is no next board")
    return result


def noisy(pk: int, team: int, level: float, **facts: object) -> Entry:
    """Return a submission with scatter over 8 folds in three tasks, the same for equal arguments."""
    random = np.random.default_rng(pk)
    return entry(pk, team, {task: tuple(level + 0.03 * random.standard_normal(8)) for task in "abc"}, **facts)


def moves(of: Board) -> dict[int, tuple[int, MoveKind]]:
    """Return each team's movement."""
    return {standing.team_key: (standing.move, standing.move_kind) for standing in of.standings}


def test_the_first_board() -> None:
    """Rows are in the order of the dynamic rank, all new, and every counted submission is a trigger."""
    first = made(phase(steady(1, 1, 10, 10), steady(2, 2, 30, 20), steady(3, 1, 20, 40)))
    assert [(row.rank, row.team, row.submission, row.submissions) for row in first.standings] == [
        (1, "Team 1", 3, 2),
        (2, "Team 2", 2, 1),
    ]
    assert first.sequence == 1
    assert first.made_at == AT
    assert first.triggers == (2, 3)
    assert {kind for _, kind in moves(first).values()} == {MoveKind.NEW}
    assert first.standings[0].last_submitted_at == START + timedelta(hours=3)


def test_without_rows_there_is_no_board() -> None:
    """Before the first public score there is nothing to publish."""
    assert board(phase()) is None
    assert board(phase(steady(1, 1, 10, public=False))) is None


def test_without_a_change_there_is_no_board() -> None:
    """The same phase gives no second board, and neither do private or incomplete submissions."""
    entries = steady(1, 1, 10, 20), steady(2, 2, 30, 5)
    first = made(phase(*entries))
    assert board(phase(*entries), first) is None
    assert board(phase(*reversed(entries)), first, at=AT + timedelta(days=1)) is None
    assert board(phase(*entries, steady(3, 1, 99, 99, public=False)), first) is None
    assert board(phase(*entries, steady(3, 1, 99)), first) is None


def test_movement_alone_makes_no_board() -> None:
    """After a move, the unchanged phase gives no further board without the arrows."""
    entries = steady(1, 1, 10, 20), steady(2, 2, 5, 5), steady(3, 2, 30, 30)
    first = made(phase(*entries[:2]))
    second = made(phase(*entries), first)
    assert moves(second) == {2: (1, MoveKind.OWN), 1: (-1, MoveKind.PASSIVE)}
    assert second.triggers == (3,)
    assert board(phase(*entries), first, second) is None


def test_a_change_below_the_printed_digits_makes_no_board() -> None:
    """A rescored cell that prints the same makes no board; one that prints differently does."""
    first = made(phase(steady(1, 1, 10.0)))
    assert board(phase(steady(1, 1, 10.0004)), first) is None
    assert board(phase(steady(1, 1, 10.0006)), first) is not None
    around_zero = made(phase(steady(1, 1, 0.0001)))
    assert board(phase(steady(1, 1, -0.0001)), around_zero) is None


@pytest.mark.parametrize(
    "change",
    [
        {"team": "Renamed"},
        {"baseline": True},
        {"eligible": False},
        {"public": False},
    ],
)
def test_a_new_name_or_flag_makes_a_board_without_triggers(change: dict[str, object]) -> None:
    """Everything that a reader can see of a row makes a new board; there are no triggers, because no new submission counts."""
    entries = steady(1, 1, 10, 20), steady(2, 2, 30, 5)
    first = made(phase(*entries))
    second = made(phase(entries[0], replace(entries[1], **change)), first)  # type: ignore[arg-type]
    assert second.sequence == 2
    assert second.triggers == ()


def test_a_submission_that_does_not_count_changes_only_the_count() -> None:
    """With ``best`` a worse public submission changes count and date, and triggers nothing."""
    entries = steady(1, 1, 30), steady(2, 1, 20)
    first = made(phase(entries[0], selection=Selection.BEST))
    second = made(phase(*entries, selection=Selection.BEST), first)
    assert (second.standings[0].submission, second.standings[0].submissions) == (1, 2)
    assert second.triggers == ()


def test_a_board_without_its_last_row_is_published_once() -> None:
    """If the only team withdraws, one empty board follows."""
    first = made(phase(steady(1, 1, 10)))
    gone = phase(steady(1, 1, 10, public=False))
    second = made(gone, first)
    assert second.standings == ()
    assert board(gone, first, second) is None


def test_moves_caused_by_a_third_team_are_passive() -> None:
    """When new weights swap two other teams, both moves are passive and the third team's submission is the trigger (paper A.3)."""
    entries = steady(1, 1, 10, 20), steady(2, 2, 11, 12), steady(3, 3, 0, 16)
    first = made(phase(*entries))
    second = made(phase(*entries, steady(4, 3, -90, 16)), first)
    assert moves(second) == {2: (1, MoveKind.PASSIVE), 1: (-1, MoveKind.PASSIVE), 3: (0, MoveKind.NONE)}
    assert second.triggers == (4,)


def test_sending_the_same_scores_again_is_no_own_move() -> None:
    """A move of a team whose new submission has the same scores is passive."""
    entries = steady(1, 1, 10, 20), steady(2, 2, 11, 12), steady(3, 3, 0, 16)
    first = made(phase(*entries))
    again = replace(entries[0], submission=5, submitted_at=START + timedelta(hours=5))
    second = made(phase(*entries, again, steady(4, 3, -90, 16)), first)
    assert moves(second)[1] == (-1, MoveKind.PASSIVE)


def test_moves_caused_by_a_rescore_are_passive() -> None:
    """Ranks that change because the organizers added a task, or scored an old one again, are not the teams' own moves."""
    old = steady(1, 1, 10), steady(2, 2, 20)
    first = made(phase(*old))
    added = made(phase(steady(1, 1, 10, 90), steady(2, 2, 20, 10)), first)
    assert moves(added) == {1: (1, MoveKind.PASSIVE), 2: (-1, MoveKind.PASSIVE)}
    rescored = made(phase(steady(1, 1, 30), steady(2, 2, 20)), first)
    assert moves(rescored) == {1: (1, MoveKind.PASSIVE), 2: (-1, MoveKind.PASSIVE)}
    again = made(phase(steady(3, 1, 30), steady(2, 2, 20)), first)
    assert moves(again) == {1: (1, MoveKind.OWN), 2: (-1, MoveKind.PASSIVE)}


def test_a_baseline_outside_the_weights_changes_nothing() -> None:
    """With ``baselines_weigh`` off the teams' rows are to the last digit those of a phase without the baseline."""
    teams = [noisy(pk, pk, 0.5 + pk / 100) for pk in range(1, 6)]
    baseline = noisy(9, 9, 0.53, baseline=True)
    without = made(phase(*teams, baselines_weigh=False))
    with_it = made(phase(*teams, baseline, baselines_weigh=False))
    assert tuple(row for row in with_it.standings if not row.baseline) == without.standings
    assert with_it.private.weights == without.private.weights


def test_rows_out_of_competition_change_nothing() -> None:
    """A team that is not eligible is shown and moves nobody."""
    teams = [noisy(pk, pk, 0.5 + pk / 100) for pk in range(1, 6)]
    guest = noisy(9, 9, 0.9, eligible=False)
    without, with_it = made(phase(*teams)), made(phase(*teams, guest))
    assert with_it.standings[0].team_key == 9
    assert not with_it.standings[0].numbered
    assert with_it.standings[1:] == without.standings


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(8)))
def test_the_order_of_entries_does_not_matter(order: list[int]) -> None:
    """Equal phases give byte-equal boards, including the bootstrap, in any order of the entries."""
    entries = [noisy(pk, pk % 5, 0.4 + pk % 3 / 50) for pk in range(8)]
    assert to_json(made(phase(*[entries[index] for index in order]))) == to_json(made(phase(*entries)))


@settings(max_examples=30, deadline=None)
@given(st.text(), st.text(), st.floats(-1e6, 1e6))
def test_boards_survive_json_exactly(team: str, method: str, level: float) -> None:
    """Hostile names, floats to the last bit, times and private figures are restored."""
    entries = entry(1, 1, {"a": (level, level + 1)}, team=team), steady(2, 2, 7, baseline=True, method=method)
    original = made(phase(*entries))
    assert from_json(to_json(original)) == original
    assert board(phase(*entries), from_json(to_json(original))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("{", "["), ('"sequence":1', '"sequence":"one"'), ('"rows":', '"lines":'), ('"team":', '"name":')],
)
def test_another_document_is_refused(old: str, new: str) -> None:
    """Text that is not JSON, a value of another type, figures without the rows that they follow from, and a missing key are refused."""
    text = to_json(made(phase(steady(1, 1, 10)))).replace(old, new, 1)
    with pytest.raises(ValueError, match="validation error"):
        from_json(text)


def test_rows_of_different_fold_numbers_are_not_compared() -> None:
    """A phase whose rows have different numbers of folds is an organizer error."""
    with pytest.raises(OrganizerError, match="folds") as caught:
        made(phase(entry(1, 1, {"a": (0.5, 0.5)}), entry(2, 2, {"a": (0.5, 0.5, 0.5)})))
    assert caught.value.code == "board.folds_differ"


def test_a_time_without_a_time_zone_is_refused() -> None:
    """Times of boards need a time zone."""
    with pytest.raises(ValueError, match="aware"):
        board(phase(steady(1, 1, 10)), at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_teams_that_cannot_be_told_apart_share_a_group() -> None:
    """Noisy scores that are close share a group, a clear difference begins the next one, and numbers increase down the board."""
    random = np.random.default_rng(0)
    levels = {1: 0.70, 2: 0.70, 3: 0.40, 4: 0.40}
    entries = [
        entry(team, team, {task: tuple(level + 0.05 * random.standard_normal(40)) for task in "abcd"})
        for team, level in levels.items()
    ]
    groups = {row.team_key: row.group for row in made(phase(*entries)).standings}
    assert groups == {1: 1, 2: 1, 3: 2, 4: 2}


def announced(of: Board) -> str:
    """Return the awards of a board."""
    return awards(public_rows(of, Rules()))


def test_awards_go_to_teams_in_competition() -> None:
    """Baselines and teams out of competition win nothing, ties share an award, and the two awards may differ."""
    result = made(
        phase(
            steady(1, 1, 99, 99, baseline=True, method="m"),
            steady(2, 2, 20, 1),
            steady(3, 3, 10, 30),
            steady(4, 4, 20, 1),
            steady(5, 5, 80, 80, eligible=False, team="Guest\n# x"),
            baselines_weigh=False,
        )
    )
    text = announced(result)
    assert "Award for mean Q: Team 3 (rank 1, mean Q 20.000)." in text
    assert "Not eligible: m (baseline)." in text
    assert "Not eligible: Guest # x (out of competition)." in text
    assert announced(replace(result, standings=())).count("nobody is eligible") == 2
    shared = made(phase(steady(1, 1, 10), steady(2, 2, 10)))
    assert "Team 1 (rank 1, mean Q 10.000) and Team 2 (rank 1, mean Q 10.000), shared." in announced(shared)
    different = announced(made(phase(steady(1, 1, 30, 0), steady(2, 2, 29, 10), steady(3, 3, 0, 1))))
    assert "dynamic rank: Team 1 (rank 1, mean Q 15.000)." in different
    assert "mean Q: Team 2 (rank 2, mean Q 19.500)." in different
    assert "unreliable" in announced(made(phase(steady(1, 1, -10))))
