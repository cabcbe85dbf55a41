"""Rebuild the history of a phase from its score matrix, update by update (paper Fig. 7, A.3).

The boards are those that would have been published if each public submission had got its own. So submissions that were published together
are separated, and a corrected or new task applies from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, pairwise

from leaderboard.ranking import REPLICATES, counts, next_board
from leaderboard.rendering import csv_cell, csv_text, display_name
from leaderboard.snapshot import Board, MoveKind, PhaseSnapshot, RowKey


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of moves, by cause.

    Attributes:
        own: Moves of rows whose own scores changed.
        passive: Moves of rows whose own scores did not.
        swaps: Swaps of two rows whose scores did not change.
    """

    own: int
    passive: int
    swaps: int


def replay(
    phase: PhaseSnapshot, *, scored_at: Mapping[int, datetime] | None = None, replicates: int = REPLICATES
) -> tuple[Board, ...]:
    """Rebuild the phase's boards, one public scored submission after the other.

    Args:
        phase: The current state of the phase, with all its entries.
        scored_at: Submission pk to the time at which its score was known; for other pks, the time of submission is used.
        replicates: Number of bootstrap replicates for each board.
    """
    moments = {entry.submission: entry.submitted_at for entry in phase.entries} | dict(scored_at or {})
    entries = sorted(
        (entry for entry in phase.entries if counts(entry, phase)),
        key=lambda entry: (moments[entry.submission], entry.submission),
    )
    boards: list[Board] = []
    for index, entry in enumerate(entries):
        then = replace(phase, entries=tuple(entries[: index + 1]))
        board = next_board(then, boards, at=moments[entry.submission], replicates=replicates)
        if board is not None:
            boards.append(board)
    return tuple(boards)


def tally(boards: Sequence[Board]) -> Tally:
    """Count moves by kind, and swaps of two rows whose scores did not change."""
    kinds = [standing.move_kind for board in boards for standing in board.standings]
    return Tally(
        own=kinds.count(MoveKind.OWN),
        passive=kinds.count(MoveKind.PASSIVE),
        swaps=sum(_swaps(before, after) for before, after in pairwise(boards)),
    )


def moves_csv(boards: Sequence[Board]) -> str:
    """Return the moves as CSV, one line per board and row, with names as in the published files."""
    header = "sequence,made_at,triggers,rank,rank_by_mean,team,team_key,submission,q_mean,group,move,move_kind,weighted_rank"
    lines = []
    for board in boards:
        weighted = _weighted_ranks(board)
        lines += [
            (
                board.sequence,
                board.made_at.isoformat(),
                " ".join(map(str, board.triggers)),
                standing.rank,
                standing.rank_by_mean,
                csv_cell(display_name(standing.team)),
                standing.team_key,
                standing.submission,
                repr(standing.q_mean),
                standing.group,
                standing.move,
                standing.move_kind.value,
                weighted.get(standing.submission, ""),
            )
            for standing in board.standings
        ]
    return csv_text(header.split(","), lines)


def replay_json(boards: Sequence[Board]) -> str:
    """Return the replay as a JSON document: the tally, then each board's moves and weights."""
    counted = tally(boards)
    document = {
        "schema": 1,
        "tally": {"own": counted.own, "passive": counted.passive, "swaps": counted.swaps},
        "boards": [
            {
                "sequence": board.sequence,
                "made_at": board.made_at.isoformat(),
                "triggers": list(board.triggers),
                "weights": board.private.weights,
                "rows": [
                    {
                        "rank": standing.rank,
                        "team": display_name(standing.team),
                        "team_key": standing.team_key,
                        "submission": standing.submission,
                        "q_mean": standing.q_mean,
                        "move": standing.move,
                        "move_kind": standing.move_kind.value,
                    }
                    for standing in board.standings
                ],
            }
            for board in boards
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _swaps(before: Board, after: Board) -> int:
    untouched = sorted(_scores(before).items() & _scores(after).items())
    old = {standing.key: standing.rank for standing in before.standings}
    new = {standing.key: standing.rank for standing in after.standings}
    return sum(
        (old[first] - old[second]) * (new[first] - new[second]) < 0
        for (first, _), (second, _) in combinations(untouched, 2)
    )


def _scores(board: Board) -> dict[RowKey, object]:
    """Return a value per row that changes with its scores: Q per task, or the submission if the board has no private figures."""
    quality = board.private.quality
    return {
        standing.key: tuple(sorted(quality[standing.key].items()))
        if standing.key in quality
        else standing.submission
        for standing in board.standings
    }


def _weighted_ranks(board: Board) -> dict[int, float]:
    figures = board.private.figures
    return {row.submission: row.weighted_rank for row in figures.rows} if figures else {}
