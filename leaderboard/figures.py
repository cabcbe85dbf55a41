"""The figures of a board that only the organizer may see.

Some of them reveal the number of tasks, so they are published only with the reveal, except for what the organizer releases early:
``intervals`` (q_interval, rank_interval, p_first, p_top3 and swap_with_next) and ``stable_views`` (mean_rank, borda and iqm with their
ranks, tau and leave_one_out). A mean rank such as 3.25 reveals the number of tasks; ``doctor`` warns of that.

Their JSON is stored with every board and published by the reveal, so its keys, which are the fields' names, must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RowFigures:
    """The figures of one row of a board.

    Attributes:
        q: Task to quality score.
        task_ranks: Task to rank.
        q_interval: Ends of the 95 % interval of mean Q; None if there are too few folds.
        swap_with_next: Share of replicates in which the row below is ahead; None for the last row.
        rank_by: Stable view to rank.
    """

    submission: int
    team_key: int
    method: str
    q: Mapping[str, float]
    weighted_rank: float
    task_ranks: Mapping[str, int]
    q_interval: tuple[float, float] | None
    rank_interval: tuple[int, int]
    p_first: float
    p_top3: float
    swap_with_next: float | None
    mean_rank: float
    borda: float
    iqm: float
    rank_by: Mapping[str, int]

    @property
    def key(self) -> tuple[int, str]:
        """The row's identity throughout the history."""
        return (self.team_key, self.method)


@dataclass(frozen=True, kw_only=True)
class Flips:
    """The pairs (ahead, behind) of submissions whose order reverses when one submission is left out of weights and task ranks."""

    submission: int
    flips: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a board.

    Attributes:
        tasks: Sorted identifiers.
        weights: Task to weight.
        replicates: Number of bootstrap replicates.
        rows: In board order.
        tau: Stable view to its Kendall's tau with the official order.
        leave_one_out: Only for submissions that reverse a pair.
    """

    tasks: tuple[str, ...]
    weights: Mapping[str, float]
    replicates: int
    rows: tuple[RowFigures, ...]
    tau: Mapping[str, float | None]
    leave_one_out: tuple[Flips, ...]


@dataclass(frozen=True, kw_only=True)
class KeptRules:
    """The rules that a board was made by, kept because they may change while a challenge runs."""

    baselines_weigh: bool
    decimals: int
    ghost_task: float
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

    @property
    def weights(self) -> Mapping[str, float]:
        """Task to weight; empty without figures."""
        return self.figures.weights if self.figures else {}

    @property
    def quality(self) -> dict[tuple[int, str], Mapping[str, float]]:
        """Each row's quality scores by task; empty without figures."""
        return {row.key: row.q for row in self.figures.rows} if self.figures else {}
