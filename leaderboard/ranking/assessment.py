"""Assess a phase: select the submissions that are its rows, rank them, and estimate the uncertainty of the ranks.

A row belongs to a team, or to one method of a team if it is a baseline, because a host team submits several. Private submissions and
incomplete rows of the score matrix never count; a missing score is not a value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

import scoring.metrics
from leaderboard.ranking.dynamic_rank import Ranking, leave_one_out, rank
from leaderboard.ranking.stability import task_stability
from leaderboard.ranking.uncertainty import FoldTable, Uncertainty, bootstrap, tie_groups
from leaderboard.rules import PhaseRules, Selection
from leaderboard.snapshot import (
    Entry,
    Figures,
    PhaseSnapshot,
    RowFigures,
    RowKey,
    RowStability,
    WaitingTeam,
)
from scoring.errors import OrganizerError

DIGITS = 6  # of bootstrap figures; further digits would be noise


@dataclass(frozen=True, kw_only=True)
class Contender:
    """The submission that counts for a team or a baseline, with facts about the row's other submissions.

    Attributes:
        entry: The submission that counts.
        name: Name to show; for a baseline its method, which says more than the name of the hosts' team.
        submissions: Number of scored public submissions of the row.
        last_submitted_at: Time of the latest of them.
    """

    entry: Entry
    name: str
    submissions: int
    last_submitted_at: datetime

    @property
    def key(self) -> RowKey:
        """The row's identity throughout the history."""
        return row_key(self.entry)

    @property
    def numbered(self) -> bool:
        """Whether it competes, as an eligible team."""
        return self.entry.eligible and not self.entry.baseline

    def apart(self, rules: PhaseRules) -> bool:
        """Return whether it affects no other row: it is listed below the others, with the rank that it would have."""
        return not (self.numbered or self.weighs(rules))

    def weighs(self, rules: PhaseRules) -> bool:
        """Return whether it counts in weights and per-task ranks, like teams in competition, and baselines if the rules say so."""
        return rules.baselines_weigh if self.entry.baseline else self.entry.eligible


def row_key(entry: Entry) -> RowKey:
    """Return the row that an entry belongs to."""
    return (entry.team_key, (entry.method or entry.team) if entry.baseline else "")


def counts(entry: Entry, phase: PhaseSnapshot) -> bool:
    """Return whether an entry may be on the board: it is public, and has every score."""
    return entry.public and complete(entry, phase)


def complete(entry: Entry, phase: PhaseSnapshot) -> bool:
    """Return whether an entry has a finite score on every task of the phase."""
    return bool(phase.row_sets) and entry.scored.issuperset(phase.row_sets)


def quality_scores(entry: Entry, tasks: Sequence[str], epsilon: float) -> list[float]:
    """Return an entry's quality score on each task (paper Eq. 1)."""
    qualities = entry.qualities
    for task in tasks:
        if (task, epsilon) not in qualities:
            qualities[task, epsilon] = scoring.metrics.quality(entry.scores[task], epsilon).q
    return [qualities[task, epsilon] for task in tasks]


def mean_quality(entry: Entry, tasks: Sequence[str], epsilon: float) -> float:
    """Return an entry's unrounded mean Q over the phase's tasks."""
    return scoring.metrics.mean_quality(quality_scores(entry, tasks, epsilon))


def counted(phase: PhaseSnapshot) -> tuple[Contender, ...]:
    """Return the submission that counts for each row, sorted by submission pk."""
    candidates: defaultdict[RowKey, list[Entry]] = defaultdict(list)
    for entry in phase.entries:
        if counts(entry, phase):
            candidates[row_key(entry)].append(entry)
    rows = (
        Contender(
            entry=counting,
            name=method or counting.team,
            submissions=len(entries),
            last_submitted_at=max(candidate.submitted_at for candidate in entries),
        )
        for (_, method), entries in candidates.items()
        if (counting := _select(entries, phase))
    )
    return tuple(sorted(rows, key=lambda row: row.entry.submission))


def waiting_teams(phase: PhaseSnapshot) -> tuple[WaitingTeam, ...]:
    """Return the teams that have a score, without baselines, sorted by name; the result must not depend on the scores."""
    rows = (
        WaitingTeam(
            key=row.key, team=row.name, submissions=row.submissions, last_submitted_at=row.last_submitted_at
        )
        for row in counted(phase)
        if not row.entry.baseline
    )
    return tuple(sorted(rows, key=lambda row: (row.team.casefold(), row.key)))


def _select(entries: Sequence[Entry], phase: PhaseSnapshot) -> Entry | None:
    """Return the entry that counts; None if the Ladder selects and none of the entries climbed it."""
    by_time = sorted(
        (entry for entry in entries if entry.climbed),
        key=lambda entry: (entry.submitted_at, entry.submission),
    )
    if phase.rules.selection is Selection.LAST:
        return by_time[-1] if by_time else None
    # On a tie, max() keeps the first, which is the earlier submission.
    return max(
        by_time,
        key=lambda entry: mean_quality(entry, tuple(phase.row_sets), phase.epsilon),
        default=None,
    )


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
    # Ranked again in board order, which is cheap, so that all arrays have the same order of rows.
    places = _ranked(phase, contenders).ranking.order
    return _ranked(phase, tuple(contenders[index] for index in places))


def assess(phase: PhaseSnapshot) -> Assessment | None:
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
    uncertainty = bootstrap(
        fold_table(phase, ordered.tasks, [contender.entry for contender in contenders]),
        epsilon=phase.epsilon,
        weighs=weighs,
        numbered=numbered,
        ghost_task=rules.ghost_task,
        replicates=rules.replicates,
    )
    reversals = leave_one_out(ordered.quality, weighs=weighs, numbered=numbered, ghost_task=rules.ghost_task)
    stability = task_stability(
        ordered.quality,
        ordered.tasks,
        weighs=weighs,
        numbered=numbered,
        ghost_task=rules.ghost_task,
        phase=phase.codename,
        replicates=rules.replicates,
    )
    pks = [contender.entry.submission for contender in contenders]
    figures = Figures(
        weights=dict(zip(ordered.tasks, ranking.weights, strict=True)),
        rows=tuple(_row(ordered, uncertainty, stability, index) for index in range(len(contenders))),
        leave_one_out={
            pks[left]: tuple((pks[ahead], pks[behind]) for ahead, behind in pairs)
            for left, pairs in reversals.items()
        },
    )
    groups = tie_groups(numbered.tolist(), uncertainty.beats, (~(weighs | numbered)).tolist())
    return Assessment(**vars(ordered), groups=groups, figures=figures)


def _row(order: Order, uncertainty: Uncertainty, stability: Sequence[RowStability], index: int) -> RowFigures:
    tasks, ranking, entry = order.tasks, order.ranking, order.contenders[index].entry
    interval = uncertainty.q_intervals[index]
    last = index + 1 == len(order.contenders)
    return RowFigures(
        submission=entry.submission,
        q=dict(zip(tasks, order.quality[index].tolist(), strict=True)),
        score={task: scoring.metrics.quality(entry.scores[task]).mean for task in tasks},
        weighted_rank=ranking.weighted_ranks[index],
        task_ranks=dict(zip(tasks, ranking.task_ranks[index], strict=True)),
        q_interval=None if interval is None else (round(interval[0], DIGITS), round(interval[1], DIGITS)),
        rank_interval=uncertainty.rank_intervals[index],
        p_first=uncertainty.p_first[index],
        p_top3=uncertainty.p_top3[index],
        swap_with_next=None if last else float(uncertainty.beats[index + 1, index]),
        stability=stability[index] if stability else None,
    )


def fold_table(phase: PhaseSnapshot, tasks: Sequence[str], entries: Sequence[Entry]) -> FoldTable:
    """Arrange the entries' fold scores for the bootstrap.

    Raises:
        OrganizerError: If entries have different numbers of folds.
    """
    columns = []
    folds_of: dict[str, int] = {}
    for task in tasks:
        scores = [entry.scores[task] for entry in entries]
        folds = folds_of.setdefault(phase.row_sets[task], len(scores[0]))
        if any(len(row) != folds for row in scores):
            raise OrganizerError(
                f"Submissions of phase {phase.codename} were scored with different numbers of folds, so they cannot be compared.",
                hint="Score the phase again with `neuco-worker challenge apply --reason TEXT`.",
                code="board.folds_differ",
            )
        columns.append(np.array(scores, np.float64))
    return FoldTable(
        row_sets=tuple(phase.row_sets[task] for task in tasks),
        folds=tuple(columns),
        seed=phase.codename,
        test_parts=phase.test_parts,
    )


def _ranked(phase: PhaseSnapshot, contenders: tuple[Contender, ...]) -> Order:
    """Rank contenders, and leave them in the given order."""
    tasks = tuple(sorted(phase.row_sets))
    scores = [quality_scores(contender.entry, tasks, phase.epsilon) for contender in contenders]
    quality = np.array(scores, np.float64)
    ranking = rank(
        quality,
        weighs=np.array([contender.weighs(phase.rules) for contender in contenders]),
        numbered=np.array([contender.numbered for contender in contenders]),
        ghost_task=phase.rules.ghost_task,
        tie_breaks=[(contender.entry.submitted_at, contender.entry.submission) for contender in contenders],
    )
    return Order(tasks=tasks, contenders=contenders, quality=quality, ranking=ranking)
