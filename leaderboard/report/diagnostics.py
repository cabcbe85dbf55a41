"""Find what an organizer should look at: tasks that do not separate teams, and unusual submissions.

A finding only describes what was observed; people must judge it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking import (
    Assessment,
    complete,
    fold_table,
    mean_quality,
    standard_errors,
    task_weights,
)
from leaderboard.snapshot import Entry, PhaseSnapshot

APART = 1.96  # two quality scores differ if they are this many combined standard errors apart
INFLATED = 1.5  # a baseline inflates a weight that is this many times the weight without it
TINY = 0.5  # a step of mean Q is tiny below this many standard errors
PROBING_STEPS = 5  # this many tiny steps suggest probing, if they are at least half of all steps


@dataclass(frozen=True, kw_only=True)
class TaskDiagnosis:
    """How well a task separates teams.

    Attributes:
        task: Identifier.
        weight: Its weight in the official ranking.
        lowest: Lowest Q of the teams in competition; 0 if there are none.
        highest: Highest Q of the same teams.
        error: Median standard error of Q.
        separated: Share of pairs of teams in competition that differ by more than ``APART`` times their combined standard error.
        inflated_by: The baseline without which the task's weight would fall most, if by more than a third.
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


@dataclass(frozen=True, kw_only=True)
class Activity:
    """A team's submissions in figures, including private ones.

    Attributes:
        submissions: Number of scored submissions.
        repeats: Number with the same embeddings as an earlier one.
        tiny_steps: Number of steps to other embeddings that changed mean Q by less than half its standard error.
        steps: Number of steps to other embeddings.
    """

    team_key: int
    team: str
    submissions: int
    repeats: int
    tiny_steps: int
    steps: int

    @property
    def probing(self) -> bool:
        """Whether many tiny steps suggest that the team probes the hidden tasks."""
        return self.tiny_steps >= PROBING_STEPS and 2 * self.tiny_steps >= self.steps


def diagnose_tasks(phase: PhaseSnapshot, assessment: Assessment) -> tuple[TaskDiagnosis, ...]:
    """Return for each task how many teams it separates, and whether a single baseline inflates its weight (paper A.3)."""
    entries = [contender.entry for contender in assessment.contenders]
    errors = standard_errors(fold_table(phase, assessment.tasks, entries), phase.epsilon)
    teams = [index for index, contender in enumerate(assessment.contenders) if contender.numbered]
    without = _weights_without(phase, assessment)
    result = []
    for column, task in enumerate(assessment.tasks):
        quality, error = assessment.quality[teams, column], errors[teams, column]
        pairs = list(itertools.combinations(range(len(teams)), 2))
        apart = [abs(quality[a] - quality[b]) > APART * np.hypot(error[a], error[b]) for a, b in pairs]
        weight = assessment.ranking.weights[column]
        least, baseline = min(
            ((weights[column], name) for name, weights in without.items()), default=(weight, None)
        )
        inflated = weight > INFLATED * least
        result.append(
            TaskDiagnosis(
                task=task,
                weight=weight,
                lowest=float(quality.min(initial=np.inf)) if teams else 0.0,
                highest=float(quality.max(initial=-np.inf)) if teams else 0.0,
                error=float(np.median(errors[:, column])),
                separated=sum(map(bool, apart)) / len(pairs) if pairs else 0.0,
                inflated_by=baseline if inflated else None,
                weight_without=float(least) if inflated else None,
            )
        )
    return tuple(result)


def _weights_without(phase: PhaseSnapshot, assessment: Assessment) -> dict[str, NDArray[np.float64]]:
    """Return, for each baseline that weighs, the task weights without it."""
    weighs = np.array([contender.weighs(phase.rules) for contender in assessment.contenders])
    places = np.arange(len(weighs))
    return {
        contender.name: task_weights(assessment.quality, weighs & (places != index), phase.rules.ghost_task)
        for index, contender in enumerate(assessment.contenders)
        if contender.entry.baseline and weighs[index] and weighs.sum() > 1
    }


def duplicates(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the submissions of different teams with the same embeddings, each group earliest first."""
    by_content: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=_moment):
        if entry.content_hash:
            by_content[entry.content_hash].append(entry)
    return [same for _, same in sorted(by_content.items()) if len({entry.team_key for entry in same}) > 1]


def activity(phase: PhaseSnapshot) -> tuple[Activity, ...]:
    """Return the activity of each team, most active first."""
    by_team: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in sorted(phase.entries, key=_moment):
        if complete(entry, phase):
            by_team[entry.team_key].append(entry)
    result = [_activity(phase, entries) for entries in by_team.values()]
    return tuple(sorted(result, key=lambda team: (-team.submissions, team.team_key)))


def _activity(phase: PhaseSnapshot, entries: Sequence[Entry]) -> Activity:
    tasks = tuple(sorted(phase.row_sets))
    seen: set[str] = set()
    repeats = steps = tiny = 0
    previous: float | None = None
    for entry in entries:
        if entry.content_hash and entry.content_hash in seen:
            repeats += 1
            continue
        seen.add(entry.content_hash)
        mean = mean_quality(entry, tasks, phase.epsilon)
        if previous is not None:
            steps += 1
            tiny += abs(mean - previous) < TINY * _error_of_mean(phase, entry, tasks)
        previous = mean
    return Activity(
        team_key=entries[-1].team_key,
        team=entries[-1].team,
        submissions=len(entries),
        repeats=repeats,
        tiny_steps=tiny,
        steps=steps,
    )


def _error_of_mean(phase: PhaseSnapshot, entry: Entry, tasks: Sequence[str]) -> float:
    """Return the standard error of an entry's mean Q as if tasks were independent, which is accurate enough here."""
    errors = standard_errors(fold_table(phase, tasks, [entry]), phase.epsilon)
    return float(np.sqrt((errors**2).sum()) / len(tasks))


def _moment(entry: Entry) -> tuple[datetime, int]:
    return (entry.submitted_at, entry.submission)
