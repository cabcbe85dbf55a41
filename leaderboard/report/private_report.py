"""The organizer's private report on a phase: everything the figures say, as one JSON document and one self-contained page."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from leaderboard.figures import Private, to_document
from leaderboard.ranking import REPLICATES, Assessment, assess, figures, fingerprint
from leaderboard.rendering import templates
from leaderboard.report.awards import awards
from leaderboard.report.diagnostics import Duplicate, activity, diagnose_tasks, find_duplicates
from leaderboard.report.replays import tally
from leaderboard.snapshot import Board, Entry, PhaseSnapshot
from scoring.tasks import TaskPlace, ceiled, group_scores

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """One phase's report.

    Attributes:
        document: JSON-ready; holds hidden-task figures, so it never leaves the organizer's hands before the reveal.
        html: The same as a self-contained page.
    """

    document: Mapping[str, Any]
    html: str

    @property
    def json(self) -> str:
        """The document as text."""
        return json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def report(
    phase: PhaseSnapshot,
    boards: Sequence[Board],
    *,
    made_at: datetime,
    places: Sequence[TaskPlace] = (),
    replicates: int = REPLICATES,
) -> Report:
    """Write the private report of a phase.

    Args:
        phase: The phase now.
        boards: Its history, for weights over time and moves.
        made_at: Time of making, aware.
        places: Where task packages are in the tree of groups, with the ceilings of their mean scores; those of other phases do not
            count.
        replicates: Of the bootstrap.
    """
    assessment = assess(phase, replicates=replicates)
    here = [place for place in places if place.identifier in phase.row_sets]
    ceilings = {place.identifier: place.ceiling for place in here if place.ceiling is not None}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "phase": phase.codename,
        "title": phase.title,
        "made_at": made_at.isoformat(),
        "rules": _rules(phase),
        "awards": awards(boards[-1], decimals=phase.rules.decimals) if boards else "",
        "standings": [],
        "tasks": [],
        "ceilings": {task: 100.0 * best for task, best in sorted(ceilings.items())},  # Q without spread
        "ceiled": {},
        "figures": {},
        "folds": {},
        "groups": [],
        "history": _history(boards),
        "duplicates": [_duplicate(phase, duplicate) for duplicate in find_duplicates(phase.entries)],
        "activity": [asdict(team) | {"probing": team.probing} for team in activity(phase)],
        "cost": _cost(phase.entries),
    }
    if assessment is not None:
        document |= _assessed(phase, assessment, replicates)
        document["groups"] = _groups(document, here)
        document["ceiled"] = {
            task: [{"score": cell["mean"], "ceiled": ceiled(cell["mean"], ceiling)} for cell in cells]
            for task, cells in sorted(document["folds"].items())
            if (ceiling := ceilings.get(task)) is not None
        }
    return Report(document=document, html=_html(document))


def _assessed(phase: PhaseSnapshot, assessment: Assessment, replicates: int) -> dict[str, Any]:
    private = Private(
        fingerprint=fingerprint(phase, assessment.contenders, replicates), figures=figures(assessment)
    )
    standings = [
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
    return {
        "standings": standings,
        "tasks": [
            asdict(task) | {"separates_nobody": task.separates_nobody}
            for task in diagnose_tasks(phase, assessment)
        ],
        "figures": to_document(private),
        "folds": {
            task: [_spread(contender.entry.scores[task]) for contender in assessment.contenders]
            for task in assessment.tasks
        },
    }


def _groups(document: Mapping[str, Any], places: Sequence[TaskPlace]) -> list[dict[str, Any]]:
    """Sum mean scores up by group of tasks, as they are and as shares of their ceilings, one list over the teams in board order each."""
    if not places:
        return []
    teams = range(len(document["standings"]))
    scores = [{task: cells[team]["mean"] for task, cells in document["folds"].items()} for team in teams]
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


def _spread(folds: Sequence[float]) -> dict[str, float | int]:
    """Summarise the finite fold scores of a cell: extremes, quartiles, moments."""
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


def _rules(phase: PhaseSnapshot) -> dict[str, Any]:
    rules = phase.rules
    return asdict(rules) | {
        "selection": rules.selection.value,
        "hidden_teams": sorted(rules.hidden_teams),
        "chosen": {str(team): submission for team, submission in sorted(rules.chosen.items())},
    }


def _history(boards: Sequence[Board]) -> dict[str, Any]:
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


def _cost(entries: Sequence[Entry]) -> dict[str, Any]:
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


def _duplicate(phase: PhaseSnapshot, duplicate: Duplicate) -> dict[str, Any]:
    names = {entry.submission: entry.team for entry in phase.entries}
    return {
        "content_hash": duplicate.content_hash,
        "submissions": [
            {"submission": submission, "team_key": team, "team": names[submission]}
            for submission, team in duplicate.submissions
        ],
    }


def _html(document: Mapping[str, Any]) -> str:
    rows = document["figures"].get("rows", [])
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            report=document,
            teams={standing["submission"]: standing["team"] for standing in document["standings"]},
            rows=[standing | row for standing, row in zip(document["standings"], rows, strict=True)],
            heat=_heat([row["q"] for row in rows]),
            boxes={task: _boxes(cells) for task, cells in document["folds"].items()},
            sparks=_sparks(document["history"]["weights"]),
        )
    )


def _heat(quality: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return, per row and task, a shade from -1 to 1: Q over the task's largest absolute Q, so that each column uses its whole scale."""
    if not quality:
        return []
    scale = {task: max(abs(row[task]) for row in quality) or 1.0 for task in quality[0]}
    return [{task: round(score / scale[task], 3) for task, score in row.items()} for row in quality]


def _boxes(cells: Sequence[Mapping[str, float]], width: float = 560.0) -> dict[str, Any]:
    """Place box plots on a common axis; scores below -1 are cut at the axis so that one failure does not flatten the rest."""
    low = max(-1.0, min([0.0, *(cell["min"] for cell in cells)]))
    high = max([1.0 if not cells else 0.0, *(cell["max"] for cell in cells), low + 0.1])

    def place(value: float) -> float:
        return round((min(max(value, low), high) - low) / (high - low) * width, 1)

    return {
        "width": width,
        "zero": place(0.0),
        "low": low,
        "high": high,
        "rows": [
            {key: place(cell[key]) for key in ("min", "q1", "median", "q3", "max")}
            | {"cut": cell["min"] < low, "failed": cell["failed"]}
            for cell in cells
        ],
    }


def _sparks(
    history: Sequence[Mapping[str, Any]], width: float = 360.0, height: float = 36.0
) -> list[dict[str, Any]]:
    """Draw each task's weight over the boards as the points of a line, on one scale for all tasks."""
    weights = [board["weights"] for board in history]
    tasks = sorted({task for board in weights for task in board})
    top = max((weight for board in weights for weight in board.values()), default=0.0) or 1.0
    step = width / max(len(weights) - 1, 1)
    return [
        {
            "task": task,
            "first": next(board[task] for board in weights if task in board),
            "last": next(board[task] for board in reversed(weights) if task in board),
            "points": " ".join(
                f"{index * step:.1f},{height - board[task] / top * (height - 2) - 1:.1f}"
                for index, board in enumerate(weights)
                if task in board
            ),
        }
        for task in tasks
    ]
