"""Assess a phase: its contenders, their ranks, and the uncertainty of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.dynamic_rank import Ranking, View, leave_one_out, rank, views
from leaderboard.ranking.selection import Contender, counted, quality_scores
from leaderboard.ranking.uncertainty import REPLICATES, FoldTable, Uncertainty, bootstrap, tie_groups
from leaderboard.snapshot import Figures, PhaseSnapshot, RowFigures
from scoring.errors import OrganizerError
from scoring.metrics import quality

DIGITS = 6  # of bootstrap figures; further digits would be noise


@dataclass(frozen=True, kw_only=True)
class Order:
    """One phase's contenders in board order.

    Attributes:
        tasks: T task identifiers, sorted.
        contenders: P contenders, from the top of the board to its bottom.
        quality: P x T quality scores.
        ranking: The official standings.
    """

    tasks: tuple[str, ...]
    contenders: tuple[Contender, ...]
    quality: NDArray[np.float64]
    ranking: Ranking


@dataclass(frozen=True, kw_only=True)
class Assessment(Order):
    """One phase's contenders in board order, with all their figures.

    Attributes:
        groups: Tie group of each of the P contenders.
        figures: The figures that a board keeps for its organizer.
    """

    groups: tuple[int, ...]
    figures: Figures


def order(phase: PhaseSnapshot) -> Order | None:
    """Select and rank a phase; None if it has no contenders."""
    contenders = counted(phase)
    if not contenders:
        return None
    tasks = tuple(sorted(phase.row_sets))
    _, ranking = _ranked(phase, tasks, contenders)
    # Ranked again in board order, which is cheap, so that all arrays have the same order of rows.
    contenders = tuple(contenders[index] for index in ranking.order)
    table, ranking = _ranked(phase, tasks, contenders)
    return Order(tasks=tasks, contenders=contenders, quality=table, ranking=ranking)


def assess(phase: PhaseSnapshot, *, replicates: int = REPLICATES) -> Assessment | None:
    """Select, rank and resample a phase; None if it has no contenders.

    Raises:
        OrganizerError: If contenders were scored on different numbers of folds, and so cannot be compared.
    """
    ordered = order(phase)
    if ordered is None:
        return None
    contenders, ranking, rules = ordered.contenders, ordered.ranking, phase.rules
    weighs = np.array([contender.weighs(rules) for contender in contenders])
    numbered = np.array([contender.numbered for contender in contenders])
    luck = bootstrap(
        fold_table(phase, ordered.tasks, contenders),
        epsilon=rules.epsilon,
        weighs=weighs,
        numbered=numbered,
        ghost_task=rules.ghost_task,
        replicates=replicates,
    )
    stable = views(ordered.quality, weighs=weighs, numbered=numbered, official=ranking.ranks)
    reversals = leave_one_out(ordered.quality, weighs=weighs, numbered=numbered, ghost_task=rules.ghost_task)
    pks = [contender.entry.submission for contender in contenders]
    figures = Figures(
        weights=dict(zip(ordered.tasks, ranking.weights, strict=True)),
        replicates=replicates,
        rows=tuple(_row(ordered, luck, stable, index) for index in range(len(contenders))),
        tau={view.name: view.tau for view in stable},
        leave_one_out={
            pks[left]: tuple((pks[ahead], pks[behind]) for ahead, behind in pairs)
            for left, pairs in reversals.items()
        },
    )
    return Assessment(**vars(ordered), groups=tie_groups(numbered.tolist(), luck.beats), figures=figures)


def _row(order: Order, luck: Uncertainty, stable: Sequence[View], index: int) -> RowFigures:
    tasks, ranking, entry = order.tasks, order.ranking, order.contenders[index].entry
    interval = luck.q_intervals[index]
    last = index + 1 == len(order.contenders)
    return RowFigures(
        submission=entry.submission,
        q=dict(zip(tasks, order.quality[index].tolist(), strict=True)),
        score={task: quality(entry.scores[task]).mean for task in tasks},
        weighted_rank=ranking.weighted_ranks[index],
        task_ranks=dict(zip(tasks, ranking.task_ranks[index], strict=True)),
        q_interval=None if interval is None else (round(interval[0], DIGITS), round(interval[1], DIGITS)),
        rank_interval=luck.rank_intervals[index],
        p_first=luck.p_first[index],
        p_top3=luck.p_top3[index],
        swap_with_next=None if last else float(luck.beats[index + 1, index]),
        views={view.name: view.scores[index] for view in stable},
        rank_by={view.name: view.ranks[index] for view in stable},
    )


def fold_table(phase: PhaseSnapshot, tasks: Sequence[str], contenders: Sequence[Contender]) -> FoldTable:
    """Arrange the contenders' fold scores for the bootstrap.

    Raises:
        OrganizerError: If contenders have different numbers of folds.
    """
    columns = []
    folds_of: dict[str, int] = {}
    for task in tasks:
        scores = [contender.entry.scores[task] for contender in contenders]
        folds = folds_of.setdefault(phase.row_sets[task], len(scores[0]))
        if any(len(row) != folds for row in scores):
            raise OrganizerError(
                f"Submissions of phase {phase.codename} were scored with different numbers of folds, so they cannot be compared.",
                cure="Score the phase again with `neuco-worker challenge apply --reason TEXT`.",
                code="board.folds_differ",
            )
        columns.append(np.array(scores, np.float64))
    return FoldTable(
        row_sets=tuple(phase.row_sets[task] for task in tasks), folds=tuple(columns), seed=phase.codename
    )


def _ranked(
    phase: PhaseSnapshot, tasks: Sequence[str], contenders: Sequence[Contender]
) -> tuple[NDArray[np.float64], Ranking]:
    epsilon = phase.rules.epsilon
    scores = [quality_scores(contender.entry, tasks, epsilon) for contender in contenders]
    table = np.array(scores, np.float64)
    ranking = rank(
        table,
        weighs=np.array([contender.weighs(phase.rules) for contender in contenders]),
        numbered=np.array([contender.numbered for contender in contenders]),
        ghost_task=phase.rules.ghost_task,
        tie_breaks=[(contender.entry.submitted_at, contender.entry.submission) for contender in contenders],
    )
    return table, ranking
