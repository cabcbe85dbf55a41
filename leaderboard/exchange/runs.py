"""Runs of the standalone benchmark: read their files, and rank them as NeuCo-Bench's ``summarize_runs`` does.

Its weights use the sample standard deviation, and ours the population's. The factor between them cancels, because weights are divided by
their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import AfterValidator, AliasChoices, BaseModel, Field, ValidationError

from leaderboard.exchange.table import rank_table
from leaderboard.ranking import Ranking
from leaderboard.rendering import csv_cell
from scoring.errors import OrganizerError

SUMMARY = "results_summary.json"
Score = Annotated[float | None, AfterValidator(lambda value: value if math.isfinite(value or 0.0) else None)]


class TaskResult(BaseModel):
    """``<task>_result.json``, also of NeuCo-Bench, which does not write the optional keys; ``q_t`` has the scores of all folds."""

    q_stat: Score
    mean_score: Score = None
    std_dev: Score = None
    hyperparameters: dict[str, Any] = Field(
        {}, validation_alias=AliasChoices("hyperparamaters", "hyperparamters")
    )
    task_type: str = ""
    q_t: list[Score] | None = None
    splits: str | None = None
    labels: str | None = None
    metrics: dict[str, dict[str, Any]] = {}
    complexity: dict[str, float | None] = {}


class RunSummary(BaseModel):
    """``results_summary.json``, without the keys that nothing here uses; before February 2026, NeuCo-Bench wrote Q under other names."""

    experiment: str = ""
    overall_q_score: Score = Field(None, validation_alias=AliasChoices("overall_q_score", "overall_score"))
    overall_acc_score: Score = None
    task_q_scores: dict[str, Score] = Field(
        validation_alias=AliasChoices("task_q_scores", "task_results", "task_result")
    )
    task_acc_scores: dict[str, Score] = {}


@dataclass(frozen=True, kw_only=True)
class PhaseRuns:
    """The runs of one phase.

    Attributes:
        table: Q of the complete runs, with entries sorted by name.
        ranking: Their dynamic rank.
        summaries: Their summaries.
        left_out: Runs that are incomplete or unreadable, with the reason.
    """

    table: pd.DataFrame
    ranking: Ranking
    summaries: tuple[RunSummary, ...]
    left_out: tuple[tuple[str, str], ...]


def read_run(folder: Path) -> tuple[RunSummary, dict[str, TaskResult]]:
    """Read a run's summary and the result of each task.

    Raises:
        OrganizerError: If it is not the folder of a run.
    """
    try:
        summary = RunSummary.model_validate_json((folder / SUMMARY).read_bytes())
        return summary, {
            task: TaskResult.model_validate_json((folder / task / f"{task}_result.json").read_bytes())
            for task in summary.task_q_scores
        }
    except (OSError, ValidationError) as error:
        raise OrganizerError(
            f"{folder} is not the folder of a run, or one of its files cannot be read.",
            cure="Name a folder that `score` has written, such as results/results/mine_20260314_120000.",
            code="runs.no_run",
        ) from error


def rank_runs(output_dir: Path, phase: str) -> PhaseRuns:
    """Rank the complete runs of a phase, which have a finite Q on every task of any run of the phase.

    Raises:
        OrganizerError: If there is no such phase, or no complete run in it.
    """
    folder = output_dir / phase
    summaries: dict[str, RunSummary] = {}
    left_out: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*/{SUMMARY}")):
        try:
            summaries[path.parent.name] = RunSummary.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            left_out.append((path.parent.name, f"{SUMMARY} cannot be read"))
    table = pd.DataFrame.from_dict(
        {name: summary.task_q_scores for name, summary in summaries.items()}, orient="index", dtype=float
    )
    for name, row in table[table.isna().any(axis=1)].iterrows():
        left_out.append((str(name), f"has no score in {', '.join(table.columns[row.isna()])}"))
    table = table.dropna()
    if table.empty:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out[:5]) or "no run has a score"
        raise OrganizerError(
            f"{folder} does not contain a complete run: {reasons}.",
            cure="Name the folder and the phase of the runs, or score embeddings on all tasks with `neuco-worker score`.",
            code="runs.none_complete",
        )
    return PhaseRuns(
        table=table,
        ranking=rank_table(table),
        summaries=tuple(summaries[name] for name in table.index),
        left_out=tuple(left_out),
    )


def leaderboard_csv(runs: PhaseRuns) -> str:
    """Return the leaderboard with NeuCo-Bench's columns, the best run first."""
    table, ranking = runs.table.reset_index(drop=True), runs.ranking
    columns = {
        "experiment": [csv_cell(name) for name in runs.table.index],
        "mean_score": ranking.means,
        "weighted_score": ranking.weighted_ranks,
        "aggregated_rank": ranking.ranks,
    }
    measured = pd.DataFrame([summary.task_acc_scores for summary in runs.summaries], index=table.index)
    overall = pd.DataFrame(
        [summary.model_dump(include={"overall_q_score", "overall_acc_score"}) for summary in runs.summaries]
    )
    parts = [pd.DataFrame(columns), table.add_prefix("q::"), measured.add_prefix("acc::"), overall]
    return pd.concat(parts, axis=1).iloc[list(ranking.order)].to_csv(index=False, lineterminator="\n")
