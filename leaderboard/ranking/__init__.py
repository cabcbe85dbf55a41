"""Rank a phase: select the submissions that count, compute the dynamic rank and its uncertainty, and make the board."""

from leaderboard.ranking import board
from leaderboard.ranking.assessment import (
    Assessment,
    Order,
    assess,
    complete,
    counted,
    counts,
    fold_table,
    mean_quality,
    order,
    row_key,
    waiting_teams,
)
from leaderboard.ranking.board import (
    append_board,
    fingerprint,
    following_board,
    from_json,
    next_board,
    to_json,
)
from leaderboard.ranking.comparison import Comparison, Difference, TaskPair, compare
from leaderboard.ranking.dynamic_rank import LARGEST, Ranking, rank, task_weights
from leaderboard.ranking.stability import stability_sentence, task_stability
from leaderboard.ranking.uncertainty import standard_errors

__all__ = [
    "LARGEST",
    "Assessment",
    "Comparison",
    "Difference",
    "Order",
    "Ranking",
    "TaskPair",
    "append_board",
    "assess",
    "board",
    "compare",
    "complete",
    "counted",
    "counts",
    "fingerprint",
    "fold_table",
    "following_board",
    "from_json",
    "mean_quality",
    "next_board",
    "order",
    "rank",
    "row_key",
    "stability_sentence",
    "standard_errors",
    "task_stability",
    "task_weights",
    "to_json",
    "waiting_teams",
]
