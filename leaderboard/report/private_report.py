"""The organizer's private report on a phase: all figures, as a JSON document and a self-contained page.

It has figures of hidden tasks, so the organizer must not pass it on before the reveal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking import Assessment, assess, stability_sentence
from leaderboard.rendering import Row, names_alike, public_rows, templates
from leaderboard.report.diagnostics import activity, diagnose_tasks, duplicates
from leaderboard.report.likeness import near_copies
from leaderboard.report.paper import PLACES, places
from leaderboard.snapshot import Board, Entry, PhaseSnapshot
from scoring.tasks import TaskPackage, ceiled, group_scores


def awards(rows: Sequence[Row]) -> str:
    """Return three places by dynamic rank and by mean Q, and the entries that could not win, one fact per line.

    Only teams in competition can win, and teams that share a rank share the place.
    """
    won = places(rows)
    lines = [
        _award(f"{place} by {award}", winners)
        for award, place, winners in won
        if winners or place == PLACES[0]
    ]
    if any(not row.reliable for *_, winners in won for row in winners):
        lines.append("A mean Q below zero is unreliable: worse than predicting the mean label.")
    lines += [
        f"Not eligible: {row.team} ({'baseline' if row.baseline else 'out of competition'})."
        for row in rows
        if row.rank is None
    ]
    return "\n".join(lines)


def _award(title: str, winners: Sequence[Row]) -> str:
    if not winners:
        return f"{title}: nobody is eligible."
    names = [f"{row.team} (rank {row.rank}, mean Q {row.q_text})" for row in winners]
    return f"{title}: {' and '.join(names)}{', shared' if len(names) > 1 else ''}."


Document = dict[str, Any]


def report(
    phase: PhaseSnapshot,
    board: Board | None,
    *,
    made_at: datetime,
    packages: Sequence[TaskPackage] = (),
    alike: Mapping[int, NDArray[np.float32]] | None = None,
    sent: Document | None = None,
) -> Document:
    """Make the private report of a phase; if nobody is on the board, it has no standings and no tasks.

    Args:
        phase: The current state of the phase.
        board: Its last board, for the awards.
        made_at: Time of the report, with a time zone.
        packages: Task packages, for groups of tasks and the ceilings of mean scores; those of other phases are ignored.
        alike: Submission to its :func:`leaderboard.report.likeness.similarities_of_rows`, for those that are compared; None if none are.
        sent: Statistics of participation: teams, files, files by day and failures by code.

    Returns:
        A JSON-ready document.
    """
    assessment = assess(phase)
    entries = {entry.submission: entry for entry in phase.entries}
    teams = {entry.team_key: entry.team for entry in phase.entries}
    return {
        "phase": phase.codename,
        "made_at": made_at.isoformat(),
        "rules": phase.rules.model_dump(mode="json"),
        "awards": "" if board is None else awards(public_rows(board, board.rounding)),
        "standings": [],
        **({} if assessment is None else _figures(phase, assessment, packages)),
        "duplicates": [
            {"content_hash": same[0].content_hash, "submissions": [_sender(entry) for entry in same]}
            for same in duplicates(phase.entries)
        ],
        "participation": sent,
        "compared": None if alike is None else len(alike),
        "near_copies": [
            {"similarity": similarity, "submissions": [_sender(entries[number]) for number in pair]}
            for similarity, *pair in near_copies(alike or {}, entries)
        ],
        "names_alike": [
            [{"team_key": key, "team": teams[key]} for key in group] for group in names_alike(teams)
        ],
        "activity": [asdict(team) | {"probing": team.probing} for team in activity(phase)],
    }


def report_page(report: Document) -> str:
    """Return a report as a self-contained page."""
    rows = report["standings"]
    # Q over the task's largest absolute Q, so that each column uses the whole scale from -1 to 1.
    scale = {task: max(abs(row["q"][task]) for row in rows) or 1.0 for task in (rows[0]["q"] if rows else ())}
    heat = [{task: round(score / scale[task], 3) for task, score in row["q"].items()} for row in rows]
    teams = {row["submission"]: row["team"] for row in rows}
    made_at = datetime.fromisoformat(report["made_at"])
    page = templates().get_template("report.html.j2")
    return page.render(report=report, made_at=made_at, teams=teams, heat=heat)


def _figures(phase: PhaseSnapshot, assessment: Assessment, packages: Sequence[TaskPackage]) -> Document:
    figures, ranking = assessment.figures, assessment.ranking
    here = [package for package in packages if package.identifier in phase.row_sets]
    ceilings = {package.identifier: package.ceiling for package in here if package.ceiling is not None}
    means = [row.score for row in figures.rows]
    return {
        "standings": [
            asdict(row)
            | {
                "team": contender.name,
                "baseline": contender.entry.baseline,
                "numbered": contender.numbered,
                "apart": contender.apart(phase.rules),
                "rank": ranking.ranks[index],
                "rank_by_mean": ranking.ranks_by_mean[index],
                "q_mean": ranking.means[index],
                "group": assessment.groups[index],
                "submissions": contender.submissions,
            }
            for index, (contender, row) in enumerate(zip(assessment.contenders, figures.rows, strict=True))
        ],
        "weights": figures.weights,
        "leave_one_out": figures.leave_one_out,
        "stability": stability_sentence(
            [
                rank if contender.numbered else None
                for contender, rank in zip(assessment.contenders, ranking.ranks, strict=True)
            ],
            [row.stability.without for row in figures.rows if row.stability],
        ),
        "tasks": [asdict(task) for task in diagnose_tasks(phase, assessment)],
        # The Q of a perfect model with equal scores on all folds.
        "ceilings": {task: 100.0 * best for task, best in sorted(ceilings.items())},
        "ceiled": {
            task: [{"score": row[task], "ceiled": ceiled(row[task], best)} for row in means]
            for task, best in sorted(ceilings.items())
        },
        "groups": _groups(means, here) if here else [],
    }


def _groups(means: Sequence[Mapping[str, float]], packages: Sequence[TaskPackage]) -> list[Document]:
    """Return mean scores by group of tasks, plain and as shares of their ceilings, each as a list over the teams in board order."""
    return [
        {
            "group": groups[0].group,
            "tasks": list(groups[0].tasks),
            "scores": [group.score for group in groups],
            "ceiled": [group.ceiled for group in groups],
        }
        for groups in zip(*(group_scores(row, packages) for row in means), strict=True)
    ]


def _sender(entry: Entry) -> Document:
    return {"submission": entry.submission, "team_key": entry.team_key, "team": entry.team}
