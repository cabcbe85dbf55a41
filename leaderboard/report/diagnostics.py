"""What an organizer should look at: tasks that do not do their work, and teams whose submissions need a question.

Signs, not verdicts: each finding says what was seen and leaves the judgment to people.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from leaderboard.ranking import (
    Assessment,
    FoldTable,
    complete,
    fold_table,
    mean_quality,
    standard_errors,
    task_weights,
)
from leaderboard.snapshot import Entry, PhaseSnapshot

APART = 1.96  # combined standard errors between two quality scores that count as different
INFLATED = 1.5  # times the weight that a task would have without one baseline
TINY = 0.5  # standard errors; a smaller step of mean Q is finer than the splits can tell
PROBING_STEPS = 5  # tiny steps, and at least half of all steps, that are worth a question


@dataclass(frozen=True, kw_only=True)
class TaskDiagnosis:
    """How a task does its work.

    Attributes:
        task: Identifier.
        weight: In the official ranking.
        lowest: Q among the teams in competition; 0 if there are none.
        highest: The same.
        error: Median standard error of Q.
        separated: Share of pairs of teams in competition that differ by more than their combined error.
        inflated_by: The baseline without which the task's weight would fall most, if it would fall by a third or more.
        weight_without: The weight without that baseline.
    """

    task: str
    weight: float
    lowest: float
    highest: float
    error: float
    separated: float
    inflated_by: str | None
    weight_without: float | None

    @property
    def separates_nobody(self) -> bool:
        """Whether no two teams can be told apart by it."""
        return self.separated == 0.0


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """Submissions of different teams with the same embeddings, as (submission, team key), earliest first."""

    content_hash: str
    submissions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """How a team submitted, private submissions included.

    Attributes:
        submissions: Scored ones.
        busiest_day: Most of them within 24 hours.
        repeats: Sent again with the same embeddings as one before.
        tiny_steps: Steps to other embeddings that moved mean Q by less than half its standard error.
        steps: Steps to other embeddings.
        seconds: Total cost of scoring.
    """

    team_key: int
    team: str
    submissions: int
    busiest_day: int
    repeats: int
    tiny_steps: int
    steps: int
    seconds: float

    @property
    def probing(self) -> bool:
        """Whether many small steps suggest that the hidden tasks are being felt for."""
        return self.tiny_steps >= PROBING_STEPS and 2 * self.tiny_steps >= self.steps


def diagnose_tasks(phase: PhaseSnapshot, assessment: Assessment) -> tuple[TaskDiagnosis, ...]:
    """Look at each task: whom it separates, and whether one baseline makes its weight (paper A.3)."""
    table = fold_table(phase, assessment.tasks, assessment.contenders)
    errors = standard_errors(table, phase.rules.epsilon)
    teams = [index for index, contender in enumerate(assessment.contenders) if contender.numbered]
    culprits = _inflation(phase, assessment)
    result = []
    for column, task in enumerate(assessment.tasks):
        quality, error = assessment.quality[teams, column], errors[teams, column]
        pairs = list(itertools.combinations(range(len(teams)), 2))
        apart = [abs(quality[a] - quality[b]) > APART * np.hypot(error[a], error[b]) for a, b in pairs]
        name, without = culprits[column]
        result.append(
            TaskDiagnosis(
                task=task,
                weight=assessment.ranking.weights[column],
                lowest=float(quality.min(initial=np.inf)) if teams else 0.0,
                highest=float(quality.max(initial=-np.inf)) if teams else 0.0,
                error=float(np.median(errors[:, column])),
                separated=sum(map(bool, apart)) / len(pairs) if pairs else 0.0,
                inflated_by=name,
                weight_without=without,
            )
        )
    return tuple(result)


def _inflation(phase: PhaseSnapshot, assessment: Assessment) -> list[tuple[str | None, float | None]]:
    """Return, per task, the baseline that inflates its weight most and the weight without it."""
    weighs = np.array([contender.weighs(phase.rules) for contender in assessment.contenders])
    found: list[tuple[str | None, float | None]] = [(None, None)] * len(assessment.tasks)
    for index, contender in enumerate(assessment.contenders):
        if not (contender.entry.baseline and weighs[index]):
            continue
        others = weighs.copy()
        others[index] = False
        if not others.any():
            continue
        without = task_weights(assessment.quality, others, phase.rules.ghost_task)
        for column, weight in enumerate(assessment.ranking.weights):
            least = found[column][1]
            inflated = weight > INFLATED * without[column]
            if inflated and (least is None or without[column] < least):
                found[column] = (contender.name, float(without[column]))
    return found


def find_duplicates(entries: Sequence[Entry]) -> tuple[Duplicate, ...]:
    """Find equal embeddings sent by different teams."""
    by_content: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.content_hash:
            by_content[entry.content_hash].append(entry)
    found = [
        Duplicate(
            content_hash=content_hash,
            submissions=tuple((entry.submission, entry.team_key) for entry in sorted(same, key=_moment)),
        )
        for content_hash, same in sorted(by_content.items())
        if len({entry.team_key for entry in same}) > 1
    ]
    return tuple(found)


def activity(phase: PhaseSnapshot) -> tuple[Activity, ...]:
    """Describe how each team submitted, the most active first."""
    by_team: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in sorted(phase.entries, key=_moment):
        if complete(entry, phase):
            by_team[entry.team_key].append(entry)
    result = [_activity(phase, entries) for entries in by_team.values()]
    return tuple(sorted(result, key=lambda team: (-team.submissions, team.team_key)))


def _activity(phase: PhaseSnapshot, entries: Sequence[Entry]) -> Activity:
    tasks = tuple(sorted(phase.row_sets))
    epsilon = phase.rules.epsilon
    seen: set[str] = set()
    repeats = steps = tiny = 0
    previous: float | None = None
    for entry in entries:
        if entry.content_hash and entry.content_hash in seen:
            repeats += 1
            continue
        seen.add(entry.content_hash)
        mean = mean_quality(entry, tasks, epsilon)
        if previous is not None:
            steps += 1
            tiny += abs(mean - previous) < TINY * _error_of_mean(phase, entry, tasks)
        previous = mean
    times = [entry.submitted_at for entry in entries]
    busiest = max(sum(start <= other < start + timedelta(days=1) for other in times) for start in times)
    return Activity(
        team_key=entries[-1].team_key,
        team=entries[-1].team,
        submissions=len(entries),
        busiest_day=busiest,
        repeats=repeats,
        tiny_steps=tiny,
        steps=steps,
        seconds=sum(entry.seconds for entry in entries),
    )


def _error_of_mean(phase: PhaseSnapshot, entry: Entry, tasks: Sequence[str]) -> float:
    """Return the standard error of an entry's mean Q as if its tasks were independent: rough, and enough for a sign."""
    table = FoldTable(
        row_sets=tuple(phase.row_sets[task] for task in tasks),
        folds=tuple(np.array([entry.scores[task]], np.float64) for task in tasks),
        seed=phase.codename,
    )
    return float(np.sqrt((standard_errors(table, phase.rules.epsilon) ** 2).sum()) / len(tasks))


def _moment(entry: Entry) -> tuple[datetime, int]:
    return (entry.submitted_at, entry.submission)
