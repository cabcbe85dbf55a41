"""Rank the runs of the standalone benchmark, as NeuCo-Bench's ``summarize_runs`` does.

Its weights use the sample standard deviation, and ours the population's. The factor between them cancels, because weights are divided by
their sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leaderboard.exchange.table import Table, rank_table
from leaderboard.ranking import Ranking
from leaderboard.rendering import csv_cell, csv_text
from scoring.errors import OrganizerError

if TYPE_CHECKING:
    from scoring.neuco_bench.results import RunSummary

SUMMARY = "results_summary.json"


@dataclass(frozen=True, kw_only=True)
class PhaseRuns:
    """The runs of one phase.

    Attributes:
        table: Q of the complete runs, with entries sorted by name.
        ranking: Their dynamic rank.
        scores: Mean scores (accuracies) by task, for each entry.
        overall: ``overall_q_score`` and ``overall_acc_score`` from the file of each entry.
        left_out: Runs that are incomplete or unreadable, with the reason.
    """

    table: Table
    ranking: Ranking
    scores: tuple[Mapping[str, float], ...]
    overall: tuple[tuple[float | None, float | None], ...]
    left_out: tuple[tuple[str, str], ...]


def rank_runs(output_dir: Path, phase: str) -> PhaseRuns:
    """Rank the complete runs of a phase, which have a finite Q on every task of any run of the phase.

    Raises:
        OrganizerError: If there is no such phase, or no complete run in it.
    """
    folder = output_dir / phase
    if not folder.is_dir():
        raise OrganizerError(
            f"There are no runs in {folder}.",
            cure="Set --output_dir and --phase to those of the runs.",
            code="runs.no_phase",
        )
    documents: dict[str, RunSummary] = {}
    left_out: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*/{SUMMARY}")):
        try:
            document = json.loads(path.read_text("utf-8"))
            if not isinstance(document["task_q_scores"], dict):
                raise TypeError
            documents[path.parent.name] = document
        except (OSError, ValueError, KeyError, TypeError):
            left_out.append((path.parent.name, f"{SUMMARY} cannot be read"))
    tasks = list(dict.fromkeys(task for document in documents.values() for task in document["task_q_scores"]))
    complete, rows = {}, []
    for name, document in documents.items():
        scores = _scores(document["task_q_scores"])
        missing = [task for task in tasks if task not in scores]
        if missing:
            left_out.append((name, f"has no score in {', '.join(missing)}"))
        else:
            complete[name] = document
            rows.append(tuple(scores[task] for task in tasks))
    if not complete or not tasks:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out[:5]) or "no run has a score"
        raise OrganizerError(
            f"{folder} does not contain a complete run: {reasons}.",
            cure="Score embeddings on all tasks with `neuco-worker score`.",
            code="runs.none_complete",
        )
    table = Table(entries=tuple(complete), tasks=tuple(tasks), scores=tuple(rows))
    return PhaseRuns(
        table=table,
        ranking=rank_table(table),
        scores=tuple(_scores(run.get("task_acc_scores")) for run in complete.values()),
        overall=tuple(
            (_finite(run.get("overall_q_score")), _finite(run.get("overall_acc_score")))
            for run in complete.values()
        ),
        left_out=tuple(left_out),
    )


def leaderboard_csv(runs: PhaseRuns) -> str:
    """Return the leaderboard with NeuCo-Bench's columns, the best run first."""
    measured = list(dict.fromkeys(task for scores in runs.scores for task in scores))
    header = ["experiment", "mean_score", "weighted_score", "aggregated_rank"]
    header += [f"q::{task}" for task in runs.table.tasks] + [f"acc::{task}" for task in measured]
    lines = (
        [
            csv_cell(runs.table.entries[index]),
            runs.ranking.means[index],
            runs.ranking.weighted_ranks[index],
            runs.ranking.ranks[index],
            *runs.table.scores[index],
            *(runs.scores[index].get(task, "") for task in measured),
            *("" if value is None else value for value in runs.overall[index]),
        ]
        for index in runs.ranking.order
    )
    return csv_text([*header, "overall_q_score", "overall_acc_score"], lines)


def _scores(given: object) -> dict[str, float]:
    scores = given if isinstance(given, dict) else {}
    return {task: score for task, value in scores.items() if (score := _finite(value)) is not None}


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
