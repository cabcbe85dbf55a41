"""The rebuilt history: own and passive moves, and weights over time."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leaderboard.figures import Private, RowFigures
from leaderboard.ranking.board import movement
from leaderboard.report.replays import Tally, moves_csv, replay, replay_json, tally
from leaderboard.snapshot import Board, Standing
from tests.leaderboard.harness.phases import START, phase, steady
from tests.leaderboard.harness.site_fixtures import SECRET

DATA = Path(__file__).parents[1] / "data"

STORY = phase(
    steady(1, 1, 10, 20),
    steady(2, 2, 11, 12),
    steady(3, 3, 0, 16),
    steady(4, 4, 50, 50, public=False),
    steady(5, 3, -90, 16),
    steady(6, 1, 30, 30),
)


def test_one_board_per_public_submission() -> None:
    """Each public submission makes its own board, at its own time; private ones make none."""
    boards = replay(STORY, replicates=50)
    assert [board.triggers for board in boards] == [(1,), (2,), (3,), (5,), (6,)]
    assert [board.made_at for board in boards] == [START + timedelta(hours=hour) for hour in (1, 2, 3, 5, 6)]
    assert [board.sequence for board in boards] == [1, 2, 3, 4, 5]


def test_own_and_passive_moves_by_hand() -> None:
    """The third team's failure swaps the two others passively; then the first team moves back with its own submission."""
    boards = replay(STORY, replicates=50)
    ranks = [{row.team_key: row.rank for row in board.standings} for board in boards]
    assert ranks == [{1: 1}, {1: 1, 2: 2}, {1: 1, 2: 2, 3: 3}, {2: 1, 1: 2, 3: 3}, {1: 1, 2: 2, 3: 3}]
    assert tally(boards) == Tally(own=1, passive=3, swaps=1)


def test_boards_follow_the_given_order_of_scores() -> None:
    """If scores came in another order than submissions, boards are in the order of the scores."""
    moments = {1: START + timedelta(days=9)}
    boards = replay(STORY, scored_at=moments, replicates=50)
    assert boards[0].triggers == (2,)
    assert boards[-1].made_at <= moments[1]


def test_tables_hold_every_board_and_weight() -> None:
    """The CSV table has one line per board and row, the JSON document each board's weights, which sum to one."""
    boards = replay(STORY, replicates=50)
    lines = list(csv.DictReader(io.StringIO(moves_csv(boards))))
    assert len(lines) == sum(len(board.standings) for board in boards)
    assert lines[0]["team"] == "Team 1"
    assert float(lines[0]["q_mean"]) == boards[0].standings[0].q_mean
    document = json.loads(replay_json(boards))
    assert [board["sequence"] for board in document["boards"]] == [1, 2, 3, 4, 5]
    for board in document["boards"]:
        assert board["weights"]["a"] + board["weights"]["b"] == pytest.approx(1.0)
    assert document["tally"] == {"own": 1, "passive": 3, "swaps": 1}
    assert [board["weights"] for board in document["boards"]] == [board.private.weights for board in boards]


def test_hostile_names_stay_in_their_cell() -> None:
    """A team name that a spreadsheet would run as a formula is shown as text."""
    boards = replay(phase(steady(1, 1, 10, team='=HYPERLINK("x")\n,')), replicates=50)
    (line,) = csv.DictReader(io.StringIO(moves_csv(boards)))
    assert line["team"].startswith("'=")
    assert "\n" not in line["team"]


def _published() -> dict[str, list[tuple[datetime, list[dict[str, str]]]]]:
    tables: dict[str, dict[datetime, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    with (DATA / "embed2scale_leaderboard_history.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            moment = datetime.fromisoformat(line["updated_utc"]).replace(tzinfo=UTC)
            tables[line["phase"]][moment].append(line)
    return {name: sorted(updates.items()) for name, updates in tables.items()}


def test_the_real_history_of_2025() -> None:
    """On the published boards of Embed2Scale most moves are passive, and the counts are those of a plain count over the table."""
    totals = [0, 0, 0]
    expected = [0, 0, 0]
    for name, updates in _published().items():
        keys: dict[str, int] = {}
        boards: list[Board] = []
        old: dict[int, Standing] = {}
        for sequence, (moment, lines) in enumerate(updates, 1):
            rows = []
            for line in lines:
                key = keys.setdefault(line["team"], len(keys))
                quality = {"mean": float(line["mean_q"])}
                before = old.get(key)
                move, kind = movement(
                    int(line["rank"]), 0, quality, before, before and {"mean": before.q_mean}
                )
                rows.append(_row(line, key, moment, move, kind))
            private = replace(SECRET, rows=tuple(_figures(row) for row in rows))
            new = {row.team_key: row for row in rows}
            both = [key for key in new if key in old]
            same = [key for key in both if old[key].q_mean == new[key].q_mean]
            moved = [key for key in both if old[key].rank != new[key].rank]
            expected[0] += sum(key not in same for key in moved)
            expected[1] += sum(key in same for key in moved)
            expected[2] += sum(
                old[a].rank < old[b].rank and new[a].rank > new[b].rank for a in same for b in same
            )
            old = new
            boards.append(
                Board(
                    phase=name,
                    sequence=sequence,
                    made_at=moment,
                    triggers=(),
                    standings=tuple(rows),
                    private=Private(figures=private),
                )
            )
        counted = tally(boards)
        totals = [totals[0] + counted.own, totals[1] + counted.passive, totals[2] + counted.swaps]
    assert totals == expected == [36, 138, 13]


def _figures(row: Standing) -> RowFigures:
    """Return the figures of a row whose only known value is mean Q."""
    return RowFigures(
        submission=row.submission,
        team_key=row.team_key,
        method="",
        q={"mean": row.q_mean},
        weighted_rank=row.rank,
        task_ranks={},
        q_interval=None,
        rank_interval=(row.rank, row.rank),
        p_first=0.0,
        p_top3=0.0,
        swap_with_next=None,
        mean_rank=row.rank,
        borda=0.0,
        iqm=0.0,
        rank_by={},
    )


def _row(line: dict[str, str], key: int, moment: datetime, move: int, kind: object) -> Standing:
    return Standing(
        rank=int(line["rank"]),
        rank_by_mean=1,
        team_key=key,
        team=line["team"],
        submission=0,
        q_mean=float(line["mean_q"]),
        baseline=False,
        eligible=True,
        group=1,
        submissions=1,
        last_submitted_at=moment,
        move=move,
        move_kind=kind,  # type: ignore[arg-type]
    )
