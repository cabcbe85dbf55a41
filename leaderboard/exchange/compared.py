"""Compare runs of the standalone benchmark with the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leaderboard.exchange.runs import TaskResult, read_run
from leaderboard.ranking import Comparison, TaskPair, compare
from scoring.errors import OrganizerError
from scoring.protocol import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
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

    @property
    def means(self) -> tuple[float, ...]:
        """Mean Q over the tasks, for each run."""
        return tuple(float(np.mean([scores[task] for task in self.tasks])) for scores in self.q)


def compare_runs(folders: Sequence[Path]) -> Compared:
    """Compare runs with the first of them.

    Raises:
        OrganizerError: If there are fewer than two, one cannot be read or has no fold scores, or they have no task in common.
    """
    if len(folders) < 2:
        raise OrganizerError(
            "A comparison needs two runs or more.", cure="Name their folders.", code="runs.too_few"
        )
    first, *others = runs = [_scored_tasks(folder) for folder in folders]
    named = list(dict.fromkeys(task for run in runs for task in run))
    tasks = tuple(task for task in named if all(task in run for run in runs))
    if not tasks:
        raise OrganizerError(
            "The runs have no task in common.",
            cure="Compare runs on the same tasks.",
            code="runs.no_common_task",
        )
    pairs = [{task: _pair(task, first[task], run[task]) for task in tasks} for run in others]
    short = [folder.resolve().name for folder in folders]
    return Compared(
        names=tuple(short if len(set(short)) == len(short) else map(str, folders)),
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
            "overall": {"difference": comparison.overall.value, "interval": comparison.overall.interval},
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
        paired=None not in (first.splits, first.labels)
        and (first.splits, first.labels) == (second.splits, second.labels),
    )


def _scored_tasks(folder: Path) -> dict[str, TaskResult]:
    """Read the tasks of a run, in its order; tasks without a finite score are left out."""
    _, results = read_run(folder)
    if any(result.q_t is None for result in results.values()):
        raise OrganizerError(
            f"The run {folder} has no fold scores. Without them, the uncertainty of a difference is unknown.",
            cure="Score it again with output_fold_results: true.",
            code="runs.no_folds",
        )
    return {
        task: result
        for task, result in results.items()
        if result.q_stat is not None and any(score is not None for score in result.q_t or ())
    }
