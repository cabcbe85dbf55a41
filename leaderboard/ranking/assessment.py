"""Assess a phase: its contenders, their ranks, and the uncertainty of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.figures import Figures, Flips, RowFigures
from leaderboard.ranking.dynamic_rank import LeftOut, Ranking, View, leave_one_out, rank, views
from leaderboard.ranking.selection import Contender, counted, quality_scores
from leaderboard.ranking.uncertainty import REPLICATES, FoldTable, Uncertainty, bootstrap, tie_groups
from leaderboard.snapshot import PhaseSnapshot, RowKey
from scoring.errors import OrganizerError

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

    @property
    def row_quality(self) -> dict[RowKey, dict[str, float]]:
        """Each row's quality scores by task."""
        rows = zip(self.contenders, self.quality.tolist(), strict=True)
        return {contender.key: dict(zip(self.tasks, row, strict=True)) for contender, row in rows}


@dataclass(frozen=True, kw_only=True)
class Assessment(Order):
    """One phase's contenders in board order, with all their figures.

    Attributes:
        uncertainty: Bootstrap figures of the same contenders.
        groups: Tie group of each of the P contenders.
        views: Stable views.
        left_out: What changes when single contenders are left out.
    """

    uncertainty: Uncertainty
    groups: tuple[int, ...]
    views: tuple[View, ...]
    left_out: tuple[LeftOut, ...]


def order(phase: PhaseSnapshot) -> Order | None:
    """Select and rank a phase; None if it has no contenders."""
    contenders = counted(phase)
    if not contenders:
        return None
    tasks = tuple(sorted(phase.row_sets))
    _, ranking = _ranked(phase, tasks, contenders)
    # Ranked again in board order, which is cheap, so that all arrays have the same order of rows.
    contenders = tuple(contenders[index] for index in ranking.order)
    quality, ranking = _ranked(phase, tasks, contenders)
    return Order(tasks=tasks, contenders=contenders, quality=quality, ranking=ranking)


def assess(phase: PhaseSnapshot, *, replicates: int = REPLICATES) -> Assessment | None:
    """Select, rank and resample a phase; None if it has no contenders.

    Raises:
        OrganizerError: If contenders were scored on different numbers of folds, and so cannot be compared.
    """
    ordered = order(phase)
    if ordered is None:
        return None
    tasks, contenders, quality, ranking = (
        ordered.tasks,
        ordered.contenders,
        ordered.quality,
        ordered.ranking,
    )
    weighs = np.array([contender.weighs(phase.rules) for contender in contenders])
    numbered = np.array([contender.numbered for contender in contenders])
    ghost_task = phase.rules.ghost_task
    uncertainty = bootstrap(
        fold_table(phase, tasks, contenders),
        epsilon=phase.rules.epsilon,
        weighs=weighs,
        numbered=numbered,
        ghost_task=ghost_task,
        replicates=replicates,
    )
    groups = tie_groups(range(len(contenders)), numbered.tolist(), uncertainty.beats)
    return Assessment(
        tasks=tasks,
        contenders=contenders,
        quality=quality,
        ranking=ranking,
        uncertainty=uncertainty,
        groups=tuple(groups[index] for index in range(len(contenders))),
        views=views(quality, weighs=weighs, numbered=numbered, official=ranking.ranks),
        left_out=leave_one_out(quality, weighs=weighs, numbered=numbered, ghost_task=ghost_task),
    )


def figures(assessment: Assessment) -> Figures:
    """Return the figures that a board keeps for its organizer."""
    pks = [contender.entry.submission for contender in assessment.contenders]
    return Figures(
        tasks=assessment.tasks,
        weights=dict(zip(assessment.tasks, assessment.ranking.weights, strict=True)),
        replicates=assessment.uncertainty.replicates,
        rows=tuple(_row(assessment, index) for index in range(len(pks))),
        tau={view.name: view.tau for view in assessment.views},
        leave_one_out=tuple(
            Flips(
                submission=pks[left.entry],
                flips=tuple((pks[ahead], pks[behind]) for ahead, behind in left.flips),
            )
            for left in assessment.left_out
            if left.flips
        ),
    )


def _row(assessment: Assessment, index: int) -> RowFigures:
    tasks, ranking, luck = assessment.tasks, assessment.ranking, assessment.uncertainty
    contender = assessment.contenders[index]
    team_key, method = contender.key
    interval = luck.q_intervals[index]
    last = index + 1 == len(assessment.contenders)
    scores = {view.name: view.scores[index] for view in assessment.views}
    return RowFigures(
        submission=contender.entry.submission,
        team_key=team_key,
        method=method,
        q=dict(zip(tasks, assessment.quality[index].tolist(), strict=True)),
        weighted_rank=ranking.weighted_ranks[index],
        task_ranks=dict(zip(tasks, ranking.task_ranks[index], strict=True)),
        q_interval=None if interval is None else (round(interval[0], DIGITS), round(interval[1], DIGITS)),
        rank_interval=luck.rank_intervals[index],
        p_first=luck.p_first[index],
        p_top3=luck.p_top3[index],
        swap_with_next=None if last else float(luck.beats[index + 1, index]),
        mean_rank=scores["mean_rank"],
        borda=scores["borda"],
        iqm=scores["iqm"],
        rank_by={view.name: view.ranks[index] for view in assessment.views},
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
    quality = np.array(
        [quality_scores(contender.entry, tasks, epsilon) for contender in contenders], np.float64
    )
    ranking = rank(
        quality,
        weighs=np.array([contender.weighs(phase.rules) for contender in contenders]),
        numbered=np.array([contender.numbered for contender in contenders]),
        ghost_task=phase.rules.ghost_task,
        tie_breaks=[(contender.entry.submitted_at, contender.entry.submission) for contender in contenders],
    )
    return quality, ranking
