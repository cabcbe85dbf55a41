"""Runs of the standalone benchmark: read their files, write the leaderboard of NeuCo-Bench's ``summarize.py``, and compare them.

Its weights use the sample standard deviation, and ours the population's. The factor between them cancels, because weights are divided by
their sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from leaderboard.exchange.table import TableRanking
from leaderboard.ranking import LARGEST, Comparison, TaskPair, compare
from leaderboard.rendering import csv_cell
from scoring.errors import OrganizerError
from scoring.protocol import Recipe

SUMMARY = "results_summary.json"
OVERALL = "mean of tasks"


def _known(value: float | None) -> float | None:
    """Return a score; one that is not finite is unknown."""
    if value is None or not math.isfinite(value):
        return None
    if abs(value) > LARGEST:
        raise ValueError("beyond the largest score")
    return value


Score = Annotated[float | None, AfterValidator(_known)]
TaskName = Annotated[str, StringConstraints(pattern=r"^[^/\x00]+$")]  # it is the name of a file, too


class Metric(BaseModel):
    """Values over the folds for a metric, of which the mean is used."""

    mean: Score


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
    test_parts: tuple[int, ...] = ()
    metrics: dict[str, Metric] = {}
    complexity: dict[str, Score] = {}

    @model_validator(mode="after")
    def _one_of_each_fold(self) -> Self:
        if self.test_parts and len(self.test_parts) != len(self.q_t or ()):
            raise ValueError("test_parts and q_t differ in length")
        return self


class RunSummary(BaseModel):
    """``results_summary.json``, without the keys that nothing here uses; before February 2026, NeuCo-Bench wrote Q under other names."""

    experiment: str = ""
    overall_q_score: Score = Field(None, validation_alias=AliasChoices("overall_q_score", "overall_score"))
    overall_acc_score: Score = None
    task_q_scores: dict[TaskName, Score] = Field(
        validation_alias=AliasChoices("task_q_scores", "task_results", "task_result")
    )
    task_acc_scores: dict[str, Score] = {}
    inputs: str | None = None
    unfinished: str | None = None


@dataclass(frozen=True, kw_only=True)
class PhaseRuns:
    """The runs of one phase.

    Attributes:
        table: Q of the complete runs, with entries sorted by name.
        summaries: Their summaries.
        left_out: Runs that are incomplete or unreadable, with the reason.
        differing: Tasks whose labels or splits are not the same in all runs that say which they were.
    """

    table: pd.DataFrame
    summaries: tuple[RunSummary, ...]
    left_out: tuple[tuple[str, str], ...]
    differing: tuple[str, ...]


def method_of(run: str) -> str:
    """Return the name of a run without its time stamp, which `score` appends."""
    return re.sub(r"_\d{8}_\d{6}(_\d+)?\Z", "", run)


def read_result(folder: Path, task: str) -> TaskResult:
    """Read the result of a task of a run.

    Raises:
        OSError, ValidationError: If it cannot be read.
    """
    return TaskResult.model_validate_json((folder / task / f"{task}_result.json").read_bytes())


def read_run(folder: Path) -> tuple[RunSummary, dict[str, TaskResult]]:
    """Read a run's summary and the result of each task.

    Raises:
        OrganizerError: If it is not the folder of a run.
    """
    try:
        summary = RunSummary.model_validate_json((folder / SUMMARY).read_bytes())
        return summary, {task: read_result(folder, task) for task in summary.task_q_scores}
    except (OSError, ValidationError) as error:
        raise OrganizerError(
            f"{folder} is not the folder of a run, or one of its files cannot be read.",
            hint="Name a folder that `score` has written, such as results/results/mine_20260314_120000.",
            code="runs.no_run",
        ) from error


def computed_again(summaries: Mapping[str, RunSummary]) -> dict[str, str]:
    """Return which runs, given oldest first, `score` computed again, because they were stopped after they had their scores."""
    newest = {
        (method_of(name), summary.inputs or summary.unfinished): name for name, summary in summaries.items()
    }
    return {
        name: "was stopped, and computed again"
        for name, summary in summaries.items()
        if summary.unfinished and newest[method_of(name), summary.unfinished] != name
    }


def read_runs(folder: Path) -> PhaseRuns:
    """Read the complete runs in the folder of a phase, which have a finite Q on every task of any run of the phase.

    Raises:
        OrganizerError: If there is no such phase, or no complete run in it.
    """
    summaries: dict[str, RunSummary] = {}
    left_out: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*/{SUMMARY}")):
        try:
            summaries[path.parent.name] = RunSummary.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            left_out.append((path.parent.name, f"{SUMMARY} cannot be read"))
    again = computed_again(summaries)
    left_out += again.items()
    table = pd.DataFrame.from_dict(
        {name: summary.task_q_scores for name, summary in summaries.items() if name not in again},
        orient="index",
        dtype=float,
    )
    left_out += [
        (str(name), f"has no score in {', '.join(table.columns[row.isna()])}")
        for name, row in table[table.isna().any(axis=1)].iterrows()
    ]
    table = table.dropna()
    if table.empty:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out[:5]) or "no run has a score"
        raise OrganizerError(
            f"{folder} does not contain a complete run: {reasons}.",
            hint="Name the folder and the phase of the runs, or score embeddings on all tasks with `neuco-worker score`.",
            code="runs.none_complete",
        )
    return PhaseRuns(
        table=table,
        summaries=tuple(summaries[name] for name in table.index),
        left_out=tuple(left_out),
        differing=tuple(task for task in table.columns if len(_tests(folder, table.index, task)) > 1),
    )


def _tests(folder: Path, runs: Iterable[str], task: str) -> set[tuple[object, ...]]:
    """Return on which labels and splits a task was scored, by the runs whose results say it; those of NeuCo-Bench do not."""
    found = set()
    for run in runs:
        with suppress(OSError, ValidationError):
            result = read_result(folder / run, task)
            if result.labels is not None:
                found.add(_test(result))
    return found


def leaderboard_csv(runs: PhaseRuns, ranking: TableRanking) -> str:
    """Return the leaderboard with NeuCo-Bench's columns, the best run first."""
    table = runs.table.reset_index(drop=True)
    columns = {
        "experiment": [csv_cell(name) for name in runs.table.index],
        "mean_score": ranking.means,
        "weighted_score": ranking.weighted_ranks,
        "aggregated_rank": pd.array(ranking.places, "Int64"),
    }
    measured = pd.DataFrame([summary.task_acc_scores for summary in runs.summaries], index=table.index)
    overall = pd.DataFrame(
        [summary.model_dump(include={"overall_q_score", "overall_acc_score"}) for summary in runs.summaries]
    )
    parts = [pd.DataFrame(columns), table.add_prefix("q::"), measured.add_prefix("acc::"), overall]
    return pd.concat(parts, axis=1).iloc[list(ranking.order)].to_csv(index=False, lineterminator="\n")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Compared:
    """A comparison of runs on the tasks that all of them have.

    Attributes:
        names: Names of the runs; the others are compared with the first.
        tasks: Names of the tasks, in the order of the first run.
        q: Q by task, for each run.
        comparisons: Difference from the first run, for each other run.
        unpaired: Tasks whose labels or splits differ from the first run's, for each other run.
        left_out: Tasks that some runs do not have.
    """

    names: tuple[str, ...]
    tasks: tuple[str, ...]
    q: tuple[Mapping[str, float], ...]
    comparisons: tuple[Comparison, ...]
    unpaired: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each other run and task, then its mean: both Q, their difference, and the ends of its 95 % interval.

        ``paired`` says whether the runs were compared fold by fold, which needs the same labels and splits.
        """
        rows = [
            {
                "run": name,
                "task": task,
                "first": first,
                "q": q,
                "difference": difference.value,
                **dict(zip(("low", "high"), difference.interval or (math.nan, math.nan), strict=True)),
                "paired": task not in unpaired if task in scores else not unpaired,
            }
            for name, scores, mean, comparison, unpaired in zip(
                self.names[1:], self.q[1:], self.means[1:], self.comparisons, self.unpaired, strict=True
            )
            for task, first, q, difference in zip(
                (*self.tasks, OVERALL),
                (*self.q[0].values(), self.means[0]),
                (*scores.values(), mean),
                (*comparison.tasks, comparison.overall),
                strict=True,
            )
        ]
        return pd.DataFrame(rows).set_index(["run", "task"])

    def __repr__(self) -> str:
        """Return the table, with what it means."""
        left_out = [f"Left out: {', '.join(self.left_out)}."] if self.left_out else []
        table = self.to_frame().round(3).to_string()
        first, *others = self.names
        other_tasks = [
            sentence
            for name, comparison in zip(others, self.comparisons, strict=True)
            if (sentence := comparison.sentence(self.tasks, first, name))
        ]
        head = f"Compared with {first}; 95 % intervals over the random splits"
        return "\n".join([head, table, *other_tasks, *left_out])

    @property
    def means(self) -> tuple[float, ...]:
        """Mean Q over the tasks, for each run."""
        return tuple(float(np.mean([scores[task] for task in self.tasks])) for scores in self.q)


def compare_runs(folders: Sequence[Path]) -> Compared:
    """Compare runs with the first of them.

    Raises:
        OrganizerError: If there are fewer than two, one cannot be read or has no fold scores, or they have no task in common.
    """
    short = [folder.resolve().name for folder in folders]
    names = short if len(set(short)) == len(short) else [str(folder) for folder in folders]
    return compare_results(names, [scored_tasks(read_run(folder)[1], str(folder)) for folder in folders])


def compare_results(names: Sequence[str], runs: Sequence[Mapping[str, TaskResult]]) -> Compared:
    """Compare the results of runs with the first of them; they come from :func:`scored_tasks`.

    Raises:
        OrganizerError: If there are fewer than two, or they have no task in common.
    """
    if len(runs) < 2:
        raise OrganizerError(
            "A comparison needs two runs or more.", hint="Name two or more.", code="runs.too_few"
        )
    first, *others = runs
    named = list(dict.fromkeys(task for run in runs for task in run))
    tasks = tuple(task for task in named if all(task in run for run in runs))
    if not tasks:
        raise OrganizerError(
            "The runs have no task in common with a score in each.",
            hint="Compare runs on the same tasks.",
            code="runs.no_common_task",
        )
    pairs = [{task: _pair(task, first[task], run[task]) for task in tasks} for run in others]
    return Compared(
        names=tuple(names),
        tasks=tasks,
        q=tuple({task: run[task].q_stat or 0.0 for task in tasks} for run in runs),
        comparisons=tuple(compare(list(each.values()), epsilon=Recipe.epsilon) for each in pairs),
        unpaired=tuple(tuple(task for task in tasks if not each[task].paired) for each in pairs),
        left_out=tuple(task for task in named if task not in tasks),
    )


def comparison_document(compared: Compared) -> dict[str, object]:
    """Return a comparison as ``compare --json`` prints it."""
    differences = [
        {
            "run": name,
            "overall": {
                "difference": comparison.overall.value,
                "interval": comparison.overall.interval,
                "depends_on": [compared.tasks[place] for place in comparison.depends_on],
                "keeps_order": comparison.keeps_order,
            },
            "tasks": {
                task: {
                    "difference": difference.value,
                    "interval": difference.interval,
                    "paired": task not in unpaired,
                }
                for task, difference in zip(compared.tasks, comparison.tasks, strict=True)
            },
        }
        for name, comparison, unpaired in zip(
            compared.names[1:], compared.comparisons, compared.unpaired, strict=True
        )
    ]
    runs = [
        {"run": name, "overall_q_score": mean, "task_q_scores": dict(scores)}
        for name, mean, scores in zip(compared.names, compared.means, compared.q, strict=True)
    ]
    return {
        "reference": compared.names[0],
        "runs": runs,
        "differences": differences,
        "left_out": list(compared.left_out),
    }


def _pair(task: str, first: TaskResult, second: TaskResult) -> TaskPair:
    """Return a task's fold scores in two runs; without the hashes of labels and splits they are not paired."""
    return TaskPair(
        first=np.array(first.q_t, np.float64),
        second=np.array(second.q_t, np.float64),
        splits=(first.splits or task, second.splits or task),
        test_parts=(first.test_parts, second.test_parts),
        paired=None not in (first.splits, first.labels) and _test(first) == _test(second),
    )


def _test(result: TaskResult) -> tuple[object, ...]:
    """Return what results have in common that can be compared fold by fold."""
    return result.splits, result.labels, result.test_parts, len(result.q_t or ())


def scored_tasks(results: Mapping[str, TaskResult], run: str) -> dict[str, TaskResult]:
    """Return the tasks of a run that have a finite score, in its order.

    Raises:
        OrganizerError: If fold scores are missing.
    """
    if any(result.q_t is None for result in results.values()):
        raise OrganizerError(
            f"The run {run} has no fold scores. Without them, the uncertainty of a difference is unknown.",
            hint="Score it again with output_fold_results: true.",
            code="runs.no_folds",
        )
    return {
        task: result
        for task, result in results.items()
        if result.q_stat is not None and any(score is not None for score in result.q_t or ())
    }
