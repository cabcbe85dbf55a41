"""Select the submissions that are the rows of a board.

A row belongs to a team, or to one method of a team if it is a baseline, because a host team submits several. Private submissions, hidden
teams and incomplete rows of the score matrix never count; a missing score is not a value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import scoring.metrics
from leaderboard.snapshot import Entry, PhaseSnapshot, RowKey, Rules, Selection, WaitingTeam


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

    def weighs(self, rules: Rules) -> bool:
        """Return whether it counts in weights and per-task ranks, like teams in competition, and baselines if the rules say so."""
        return rules.baselines_weigh if self.entry.baseline else self.entry.eligible


def row_key(entry: Entry) -> RowKey:
    """Return the row that an entry belongs to."""
    return (entry.team_key, (entry.method or entry.team) if entry.baseline else "")


def counts(entry: Entry, phase: PhaseSnapshot) -> bool:
    """Return whether an entry may be on the board: it is public, not hidden, and has every score."""
    return entry.public and entry.team not in phase.rules.hidden_teams and complete(entry, phase)


def complete(entry: Entry, phase: PhaseSnapshot) -> bool:
    """Return whether an entry has a finite score on every task of the phase."""
    scores = (entry.scores.get(task, ()) for task in phase.row_sets)
    return bool(phase.row_sets) and all(any(map(math.isfinite, folds)) for folds in scores)


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
    """Return the submission that counts for each row, sorted by submission pk.

    With ``chosen``, the last submission counts for rows that the organizer did not choose for.
    """
    candidates: defaultdict[RowKey, list[Entry]] = defaultdict(list)
    for entry in phase.entries:
        if counts(entry, phase):
            candidates[row_key(entry)].append(entry)
    rows = []
    for (_, method), entries in candidates.items():
        counting = _select(entries, phase)
        if counting is None:
            continue
        rows.append(
            Contender(
                entry=counting,
                name=method or counting.team,
                submissions=len(entries),
                last_submitted_at=max(candidate.submitted_at for candidate in entries),
            )
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
    rules = phase.rules
    by_time = sorted(
        (entry for entry in entries if entry.climbed),
        key=lambda entry: (entry.submitted_at, entry.submission),
    )
    if not by_time:
        return None
    if rules.selection in (Selection.BEST, Selection.LADDER):
        # On a tie, max() keeps the first, which is the earlier submission.
        return max(by_time, key=lambda entry: mean_quality(entry, tuple(phase.row_sets), rules.epsilon))
    if rules.selection is Selection.CHOSEN:
        named = [entry for entry in by_time if entry.submission == rules.chosen.get(entry.team_key)]
        if named:
            return named[0]
    return by_time[-1]
