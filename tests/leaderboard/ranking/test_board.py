"""When there is a next board, what it contains, and how rows moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.ranking.board import from_json, next_board, to_json
from leaderboard.rendering import public_rows
from leaderboard.report.private_report import awards
from leaderboard.rules import Selection
from leaderboard.snapshot import Board, Entry, MoveKind, PhaseSnapshot, Standing
from scoring.errors import OrganizerError
from tests.leaderboard.harness.phases import START, entry, phase, steady

AT = START + timedelta(days=10)


def made(snapshot: PhaseSnapshot, *history: Board, at: datetime = AT) -> Board | None:
    """Make the next board with few replicates."""
    return next_board(snapshot, history, at=at)


def first_board(snapshot: PhaseSnapshot) -> Board:
    """Make the first board of a phase."""
    board = made(snapshot)
    if board is None:
        pytest.fail("there is no board")
    return board


def moves(of: Board | None) -> dict[int, tuple[int, MoveKind]]:
    """Return each team's movement."""
    return {
        standing.team_key: (standing.move, standing.move_kind) for standing in (of.standings if of else ())
    }


def noisy(pk: int, team: int, level: float, **facts: object) -> Entry:
    """Return a submission with scatter over 8 folds in three tasks, the same for equal arguments."""
    random = np.random.default_rng(pk)
    return entry(pk, team, {task: tuple(level + 0.03 * random.standard_normal(8)) for task in "abc"}, **facts)


def test_other_digits_are_another_board() -> None:
    """If rules change how values are rounded, the history shows the values that a reader sees from then on."""
    snapshot = phase(steady(1, 1, 10.25, 10.25))
    first = first_board(snapshot)
    whole = replace(snapshot, rules=snapshot.rules.model_copy(update={"decimals": 0}))
    board = made(whole, first)
    assert board is not None
    assert board.rounding.decimals == 0
    assert made(whole, first, board) is None


def test_the_first_board() -> None:
    """Rows are in the order of the dynamic rank, all new, and every counted submission is a trigger."""
    first = first_board(phase(steady(1, 1, 10, 10), steady(2, 2, 30, 20), steady(3, 1, 20, 40)))
    assert [(row.rank, row.team, row.submission, row.submissions) for row in first.standings] == [
        (1, "Team 1", 3, 2),
        (2, "Team 2", 2, 1),
    ]
    assert first.sequence == 1
    assert first.made_at == AT
    assert first.triggers == (2, 3)
    assert {kind for _, kind in moves(first).values()} == {MoveKind.NEW}
    assert first.standings[0].last_submitted_at == START + timedelta(hours=3)


TWO = (steady(1, 1, 10, 20), steady(2, 2, 30, 5))
BEST = {"selection": Selection.BEST}


@pytest.mark.parametrize(
    ("before", "after", "rules", "triggers"),
    [
        ((), (), {}, None),
        ((), (steady(1, 1, 10, public=False),), {}, None),
        (TWO, TWO[::-1], {}, None),
        (TWO, (*TWO, steady(3, 1, 99, 99, public=False)), {}, None),
        (TWO, (*TWO, steady(3, 1, 99)), {}, None),
        (TWO, (*TWO, steady(3, 1, 40, 40)), {}, (3,)),
        (TWO, (TWO[0], replace(TWO[1], team="Renamed")), {}, ()),
        (TWO, (TWO[0], replace(TWO[1], baseline=True)), {}, ()),
        (TWO, (TWO[0], replace(TWO[1], eligible=False)), {}, ()),
        (TWO, (TWO[0], replace(TWO[1], public=False)), {}, ()),
        ((steady(1, 1, 10.0),), (steady(1, 1, 10.0004),), {}, None),
        ((steady(1, 1, 10.0),), (steady(1, 1, 10.0006),), {}, ()),
        ((steady(1, 1, 0.0001),), (steady(1, 1, -0.0001),), {}, None),
        ((steady(1, 1, 30),), (steady(1, 1, 30), steady(2, 1, 20)), BEST, ()),
    ],
)
def test_a_board_is_made_when_a_reader_sees_a_change(
    before: Sequence[Entry],
    after: Sequence[Entry],
    rules: dict[str, object],
    triggers: tuple[int, ...] | None,
) -> None:
    """Private, incomplete and repeated submissions, and changes below the printed digits, make none; triggers are newly counted."""
    first = made(phase(*before, **rules))
    history = [first] if first else []
    second = made(phase(*after, **rules), *history, at=AT + timedelta(days=1))
    assert (None if second is None else second.triggers) == triggers
    if second:
        assert second.sequence == 2
        assert made(phase(*after, **rules), *history, second) is None  # the movement alone is no change


OTHER = {"team": "Another", "method": "another", "last_submitted_at": AT, "q_mean": 5.0}
"""Values that no row has; of numbers and flags, the next one is."""


@pytest.mark.parametrize("name", sorted({field.name for field in fields(Standing)} - {"move", "move_kind"}))
def test_every_value_of_a_row_counts(name: str) -> None:
    """A board is made whichever of them differs, also one that somebody adds."""
    snapshot = phase(*TWO)
    first = first_board(snapshot)
    value = OTHER.get(name) or getattr(first.standings[0], name) + 1
    standings = (replace(first.standings[0], **{name: value}), *first.standings[1:])
    before = replace(first, standings=standings, fingerprint="")
    assert made(snapshot, before) is not None
    assert made(snapshot, replace(first, fingerprint="")) is None


SWAPPED = (steady(1, 1, 10, 20), steady(2, 2, 11, 12), steady(3, 3, 0, 16))
SWAP = steady(4, 3, -90, 16)  # new weights swap the two others (paper A.3)
AGAIN = replace(SWAPPED[0], submission=5, submitted_at=START + timedelta(hours=5))
PAIR = (steady(1, 1, 10), steady(2, 2, 20))
OWN, PASSIVE, NONE = MoveKind.OWN, MoveKind.PASSIVE, MoveKind.NONE


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PAIR, (*PAIR, steady(3, 1, 30)), {1: (1, OWN), 2: (-1, PASSIVE)}),
        (SWAPPED, (*SWAPPED, SWAP), {1: (-1, PASSIVE), 2: (1, PASSIVE), 3: (0, NONE)}),
        (SWAPPED, (*SWAPPED, SWAP, AGAIN), {1: (-1, PASSIVE), 2: (1, PASSIVE), 3: (0, NONE)}),
        (PAIR, (steady(1, 1, 10, 90), steady(2, 2, 20, 10)), {1: (1, PASSIVE), 2: (-1, PASSIVE)}),
        (PAIR, (steady(1, 1, 30), steady(2, 2, 20)), {1: (1, PASSIVE), 2: (-1, PASSIVE)}),
        (PAIR, (steady(3, 1, 30), steady(2, 2, 20)), {1: (1, OWN), 2: (-1, PASSIVE)}),
    ],
)
def test_moves_have_a_kind(
    before: Sequence[Entry], after: Sequence[Entry], expected: dict[int, tuple[int, MoveKind]]
) -> None:
    """A move is own if a new submission with another mean Q counts; others' submissions, a new task and a rescore are passive."""
    assert moves(made(phase(*after), first_board(phase(*before)))) == expected


@pytest.mark.parametrize(
    ("guest", "rules"),
    [(noisy(9, 9, 0.53, baseline=True), {"baselines_weigh": False}), (noisy(9, 9, 0.9, eligible=False), {})],
)
def test_rows_that_do_not_weigh_change_nothing(guest: Entry, rules: dict[str, object]) -> None:
    """A baseline outside the weights, or a team out of competition, leaves the other rows equal to the last digit."""
    teams = [noisy(pk, pk, 0.5 + pk / 100) for pk in range(1, 6)]
    without, joined = first_board(phase(*teams, **rules)), first_board(phase(*teams, guest, **rules))
    assert tuple(row for row in joined.standings if row.numbered) == without.standings


@pytest.mark.parametrize(
    ("guest", "rules", "rank", "group"),
    [
        (steady(9, 9, 11, 21, 31, 0, eligible=False), {}, 2, 2),
        (steady(9, 9, 11, 21, 31, 0, baseline=True), {"baselines_weigh": False}, 2, 2),
        (steady(9, 9, 99, 99, 99, 99, eligible=False), {}, 1, 1),
        (steady(9, 9, 0, 0, 0, 0, eligible=False), {}, 3, 3),
    ],
)
def test_who_is_out_of_competition_is_listed_apart_with_the_rank_it_would_have(
    guest: Entry, rules: dict[str, object], rank: int, group: int
) -> None:
    """It pushes nobody down on the board, but is compared with others as if it did: it beats a team that it beats on most tasks."""
    teams = (steady(1, 1, 40, 40, 40, 40), steady(2, 2, 10, 20, 30, 50))
    board = first_board(phase(*teams, guest, steady(8, 8, 0, 0, 0, 0, eligible=False), **rules))
    assert [(row.submission, row.rank, row.apart) for row in board.standings] == [
        (1, 1, False),
        (2, 2, False),
        (9, rank, True) if rank < 3 else (8, 3, True),
        (8, 3, True) if rank < 3 else (9, 3, True),
    ]
    shown = next(row for row in public_rows(board, board.rounding) if row.submission == 9)
    assert (shown.rank, shown.shown_rank, shown.group) == (None, f"({rank})", group)


def test_a_board_without_its_last_row_is_published_once() -> None:
    """If the only team withdraws, one empty board follows."""
    first, gone = first_board(phase(steady(1, 1, 10))), phase(steady(1, 1, 10, public=False))
    second = made(gone, first)
    assert second is not None
    assert second.standings == ()
    assert made(gone, first, second) is None


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(8)))
def test_the_order_of_entries_does_not_matter(order: list[int]) -> None:
    """Equal phases give byte-equal boards, including the bootstrap, in any order of the entries."""
    entries = [noisy(pk, pk % 5, 0.4 + pk % 3 / 50) for pk in range(8)]
    assert to_json(first_board(phase(*[entries[index] for index in order]))) == to_json(
        first_board(phase(*entries))
    )


@settings(max_examples=30, deadline=None)
@given(st.text(), st.text(), st.floats(-1e6, 1e6))
def test_boards_survive_json_exactly(team: str, method: str, level: float) -> None:
    """Hostile names, floats to the last bit, times and private figures are restored."""
    entries = entry(1, 1, {"a": (level, level + 1)}, team=team), steady(2, 2, 7, baseline=True, method=method)
    original = first_board(phase(*entries))
    assert from_json(to_json(original)) == original
    assert made(phase(*entries), from_json(to_json(original))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("{", "["), ('"sequence":1', '"sequence":"one"'), ('"rows":', '"lines":'), ('"team":', '"name":')],
)
def test_another_document_is_refused(old: str, new: str) -> None:
    """Text that is not JSON, a value of another type, figures without the rows that they follow from, and a missing key are refused."""
    text = to_json(first_board(phase(steady(1, 1, 10)))).replace(old, new, 1)
    with pytest.raises(ValueError, match="validation error"):
        from_json(text)


def test_rows_of_different_fold_numbers_are_not_compared() -> None:
    """A phase whose rows have different numbers of folds is an organizer error."""
    with pytest.raises(OrganizerError, match="folds") as caught:
        made(phase(entry(1, 1, {"a": (0.5, 0.5)}), entry(2, 2, {"a": (0.5, 0.5, 0.5)})))
    assert caught.value.code == "board.folds_differ"


def announced(of: Board) -> str:
    """Return the awards of a board."""
    return awards(public_rows(of, of.rounding))


def test_awards_go_to_teams_in_competition() -> None:
    """Baselines and teams out of competition win nothing, ties share an award, and the two awards may differ."""
    result = first_board(
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
    assert "First by mean Q: Team 3 (rank 1, mean Q 20.000)." in text
    assert "Not eligible: m (baseline)." in text
    assert "Not eligible: Guest # x (out of competition)." in text
    assert announced(replace(result, standings=())).count("nobody is eligible") == 2
    assert "Second by dynamic rank: " in text
    shared = first_board(phase(steady(1, 1, 10), steady(2, 2, 10)))
    assert "Team 1 (rank 1, mean Q 10.000) and Team 2 (rank 1, mean Q 10.000), shared." in announced(shared)
    different = announced(first_board(phase(steady(1, 1, 30, 0), steady(2, 2, 29, 10), steady(3, 3, 0, 1))))
    assert "First by dynamic rank: Team 1 (rank 1, mean Q 15.000)." in different
    assert "First by mean Q: Team 2 (rank 2, mean Q 19.500)." in different
