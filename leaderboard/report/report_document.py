"""The private report as a JSON document, typed as far as other code reads it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from leaderboard.figures import Private, to_document
from leaderboard.ranking import Assessment
from leaderboard.report.awards import awards
from leaderboard.report.diagnostics import Duplicate, activity, diagnose_tasks, find_duplicates
from leaderboard.report.names_alike import names_alike
from leaderboard.report.near_copies import near_copies
from leaderboard.report.replays import tally
from leaderboard.snapshot import Board, Entry, PhaseSnapshot
from scoring.tasks import TaskPlace, ceiled, group_scores

SCHEMA = 1


class Spread(TypedDict):
    """Statistics of a cell's finite fold scores, and the numbers of all and of failed folds."""

    min: float
    q1: float
    median: float
    q3: float
    max: float
    mean: float
    std: float
    folds: int
    failed: int


class ReportDocument(TypedDict):
    """The top level of the document; the functions below describe its parts."""

    schema: int
    phase: str
    title: str
    made_at: str
    rules: dict[str, object]
    awards: str
    standings: list[dict[str, object]]
    tasks: list[dict[str, object]]
    ceilings: dict[str, float]
    ceiled: dict[str, list[dict[str, float | None]]]
    figures: dict[str, object]
    folds: dict[str, list[Spread]]
    groups: list[dict[str, object]]
    history: dict[str, object]
    duplicates: list[dict[str, object]]
    compared: int | None
    near_copies: list[dict[str, object]]
    names_alike: list[list[dict[str, object]]]
    activity: list[dict[str, object]]
    cost: dict[str, object]


def report_document(
    phase: PhaseSnapshot,
    boards: Sequence[Board],
    places: Sequence[TaskPlace],
    assessment: Assessment | None,
    private: Private,
    *,
    alike: Mapping[int, NDArray[np.float32]] | None,
    made_at: datetime,
) -> ReportDocument:
    """Return the report on a phase; without an assessment it has no standings, tasks and figures.

    Args:
        phase: The current state of the phase.
        boards: Its boards so far.
        places: Places of the phase's tasks in the tree of groups, with the ceilings of their mean scores.
        assessment: Assessment of the phase.
        private: Its figures.
        alike: Similarities of rows for each submission that was compared; None if none were.
        made_at: Time of the report, with a time zone.
    """
    ceilings = {place.identifier: place.ceiling for place in places if place.ceiling is not None}
    document: ReportDocument = {
        "schema": SCHEMA,
        "phase": phase.codename,
        "title": phase.title,
        "made_at": made_at.isoformat(),
        "rules": _rules(phase),
        "awards": awards(boards[-1], decimals=phase.rules.decimals) if boards else "",
        "standings": [],
        "tasks": [],
        # The Q of a perfect model with equal scores on all folds.
        "ceilings": {task: 100.0 * best for task, best in sorted(ceilings.items())},
        "ceiled": {},
        "figures": {},
        "folds": {},
        "groups": [],
        "history": _history(boards),
        "duplicates": [_duplicate(phase, duplicate) for duplicate in find_duplicates(phase.entries)],
        "compared": None if alike is None else len(alike),
        "near_copies": [] if alike is None else _near_copies(phase, alike),
        "names_alike": _names_alike(phase),
        "activity": [asdict(team) | {"probing": team.probing} for team in activity(phase)],
        "cost": _cost(phase.entries),
    }
    if assessment is not None:
        cells = {
            task: [_spread(contender.entry.scores[task]) for contender in assessment.contenders]
            for task in assessment.tasks
        }
        document["standings"] = _standings(assessment)
        document["tasks"] = [
            asdict(task) | {"separates_nobody": task.separates_nobody}
            for task in diagnose_tasks(phase, assessment)
        ]
        document["figures"] = to_document(private)
        document["folds"] = cells
        document["groups"] = _groups(cells, places)
        document["ceiled"] = _ceiled(cells, ceilings)
    return document


def _standings(assessment: Assessment) -> list[dict[str, object]]:
    return [
        {
            "submission": contender.entry.submission,
            "team_key": contender.entry.team_key,
            "team": contender.name,
            "baseline": contender.entry.baseline,
            "numbered": contender.numbered,
            "rank": assessment.ranking.ranks[index],
            "rank_by_mean": assessment.ranking.ranks_by_mean[index],
            "q_mean": assessment.ranking.means[index],
            "group": assessment.groups[index],
            "submissions": contender.submissions,
        }
        for index, contender in enumerate(assessment.contenders)
    ]


def _groups(cells: Mapping[str, Sequence[Spread]], places: Sequence[TaskPlace]) -> list[dict[str, object]]:
    """Return mean scores by group of tasks, plain and as shares of their ceilings, each as a list over the teams in board order."""
    if not places:
        return []
    scores = [
        {task: cell["mean"] for task, cell in zip(cells, team, strict=True)}
        for team in zip(*cells.values(), strict=True)
    ]
    trees = [group_scores(each, places) for each in scores]
    return [
        {
            "group": groups[0].group,
            "depth": groups[0].depth,
            "tasks": list(groups[0].tasks),
            "scores": [group.score for group in groups],
            "ceiled": [group.ceiled for group in groups],
        }
        for groups in zip(*trees, strict=True)
    ]


def _ceiled(
    cells: Mapping[str, Sequence[Spread]], ceilings: Mapping[str, float]
) -> dict[str, list[dict[str, float | None]]]:
    """Return the mean scores of tasks with a ceiling, plain and as shares of it."""
    return {
        task: [
            {"score": cell["mean"], "ceiled": ceiled(cell["mean"], ceilings[task])} for cell in cells[task]
        ]
        for task in sorted(cells)
        if task in ceilings
    }


def _spread(folds: Sequence[float]) -> Spread:
    finite = np.array([score for score in folds if math.isfinite(score)])
    low, first, median, third, high = np.quantile(finite, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist()
    return {
        "min": low,
        "q1": first,
        "median": median,
        "q3": third,
        "max": high,
        "mean": float(finite.mean()),
        "std": float(finite.std()),
        "folds": len(folds),
        "failed": len(folds) - len(finite),
    }


def _rules(phase: PhaseSnapshot) -> dict[str, object]:
    rules = phase.rules
    return asdict(rules) | {
        "selection": rules.selection.value,
        "hidden_teams": sorted(rules.hidden_teams),
        "chosen": {str(team): submission for team, submission in sorted(rules.chosen.items())},
    }


def _history(boards: Sequence[Board]) -> dict[str, object]:
    return {
        "tally": asdict(tally(boards)),
        "weights": [
            {
                "sequence": board.sequence,
                "made_at": board.made_at.isoformat(),
                "weights": board.private.weights,
            }
            for board in boards
        ],
    }


def _cost(entries: Sequence[Entry]) -> dict[str, object]:
    return {
        "submissions": len(entries),
        "seconds": math.fsum(entry.seconds for entry in entries),
        "median_seconds": statistics.median([entry.seconds for entry in entries]) if entries else 0.0,
        "each": [
            {
                "submission": entry.submission,
                "team": entry.team,
                "submitted_at": entry.submitted_at.isoformat(),
                "public": entry.public,
                "seconds": entry.seconds,
            }
            for entry in sorted(entries, key=lambda entry: entry.submission)
        ],
    }


def _duplicate(phase: PhaseSnapshot, duplicate: Duplicate) -> dict[str, object]:
    names = {entry.submission: entry.team for entry in phase.entries}
    return {
        "content_hash": duplicate.content_hash,
        "submissions": [
            {"submission": submission, "team_key": team, "team": names[submission]}
            for submission, team in duplicate.submissions
        ],
    }


def _near_copies(phase: PhaseSnapshot, alike: Mapping[int, NDArray[np.float32]]) -> list[dict[str, object]]:
    entries = {entry.submission: entry for entry in phase.entries}
    teams = {submission: entries[submission].team_key for submission in alike}
    return [
        {
            "similarity": copy.similarity,
            "submissions": [
                {"submission": number, "team_key": teams[number], "team": entries[number].team}
                for number in (copy.first, copy.second)
            ],
        }
        for copy in near_copies(alike, teams)
        if entries[copy.first].content_hash != entries[copy.second].content_hash  # these are duplicates
    ]


def _names_alike(phase: PhaseSnapshot) -> list[list[dict[str, object]]]:
    teams = {entry.team_key: entry.team for entry in phase.entries}
    return [[{"team_key": key, "team": teams[key]} for key in group] for group in names_alike(teams)]
