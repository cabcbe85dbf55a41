"""The figures of a board that only the organizer may see.

Some of them reveal the number of tasks, so they are published only with the reveal, except for what the organizer releases early:
``intervals`` (q_interval, rank_interval, p_first, p_top3 and swap_with_next) and ``stable_views`` (views with their ranks, tau and
leave_one_out). A mean rank such as 3.25 reveals the number of tasks; ``doctor`` warns of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RowFigures:
    """The figures of one row of a board.

    Attributes:
        q: Task to quality score.
        score: Task to the mean of its finite fold scores.
        task_ranks: Task to rank.
        q_interval: Ends of the 95 % interval of mean Q; None if there are too few folds.
        swap_with_next: Share of replicates in which the row below is ahead; None for the last row.
        views: Stable view to score.
        rank_by: Stable view to rank.
    """

    submission: int
    q: Mapping[str, float]
    score: Mapping[str, float]
    weighted_rank: float
    task_ranks: Mapping[str, int]
    q_interval: tuple[float, float] | None
    rank_interval: tuple[int, int]
    p_first: float
    p_top3: float
    swap_with_next: float | None
    views: Mapping[str, float]
    rank_by: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a board.

    Attributes:
        weights: Task to weight, sorted by task.
        replicates: Number of bootstrap replicates.
        rows: In board order.
        tau: Stable view to its Kendall's tau with the official order.
        leave_one_out: Submission to the pairs (ahead, behind) of submissions whose order reverses when it is left out of weights and task
            ranks, if there are any.
    """

    weights: Mapping[str, float]
    replicates: int
    rows: tuple[RowFigures, ...]
    tau: Mapping[str, float | None]
    leave_one_out: Mapping[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, kw_only=True)
class KeptRules:
    """The rules that the page needs of earlier boards, kept because they may change while a challenge runs."""

    baselines_weigh: bool
    decimals: int
    ladder_step: float | None = None


@dataclass(frozen=True, kw_only=True)
class Private:
    """The private part of a board, for its organizer.

    Attributes:
        fingerprint: Hash of everything that decided the board.
        rules: The rules that it was made by.
        figures: None for boards without rows, and if only the rules were kept.
    """

    fingerprint: str | None = None
    rules: KeptRules | None = None
    figures: Figures | None = None
