"""Compare runs of the standalone benchmark with the first of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.exchange.runs import SUMMARY
from leaderboard.ranking import Comparison, TaskPair, compare
from scoring.errors import OrganizerError
from scoring.protocol import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskFolds:
    """One task of a run.

    Attributes:
        q: Its quality score.
        folds: K fold scores, NaN where a fold failed.
        splits: Hash of the rows that each fold tests.
        labels: Hash of the labels.
    """

    q: float
    folds: NDArray[np.float64]
    splits: str
    labels: str


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
    runs = [_read(folder) for folder in folders]
    named = list(dict.fromkeys(task for run in runs for task in run))
    tasks = tuple(task for task in named if all(task in run for run in runs))
    if not tasks:
        raise OrganizerError(
            "The runs have no task in common.",
            cure="Compare runs on the same tasks.",
            code="runs.no_common_task",
        )
    first, *others = runs
    short = [folder.resolve().name for folder in folders]
    return Compared(
        names=tuple(short if len(set(short)) == len(short) else map(str, folders)),
        tasks=tasks,
        q=tuple({task: run[task].q for task in tasks} for run in runs),
        comparisons=tuple(
            compare([_pair(first[task], run[task]) for task in tasks], epsilon=Recipe.epsilon)
            for run in others
        ),
        unpaired=tuple(
            tuple(task for task in tasks if not _pair(first[task], run[task]).paired) for run in others
        ),
        left_out=tuple(task for task in named if task not in tasks),
    )


def comparison_document(compared: Compared) -> dict[str, object]:
    """Return a comparison as ``compare --json`` prints it."""
    differences = [
        {
            "run": name,
            "overall": {"difference": found.overall.value, "interval": found.overall.interval},
            "tasks": {
                task: {"difference": one.value, "interval": one.interval, "paired": task not in unpaired}
                for task, one in zip(compared.tasks, found.tasks, strict=True)
            },
        }
        for name, found, unpaired in zip(
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


def _pair(first: TaskFolds, second: TaskFolds) -> TaskPair:
    return TaskPair(
        first=first.folds,
        second=second.folds,
        splits=(first.splits, second.splits),
        paired=(first.splits, first.labels) == (second.splits, second.labels),
    )


def _read(folder: Path) -> dict[str, TaskFolds]:
    """Read the tasks of a run, in its order; tasks without a finite score are left out."""
    try:
        tasks = list(json.loads((folder / SUMMARY).read_text("utf-8"))["task_q_scores"])
        documents = {
            task: json.loads((folder / task / f"{task}_result.json").read_text("utf-8")) for task in tasks
        }
        found = {
            task: _task(document, folder.resolve() / task)
            for task, document in documents.items()
            if "q_t" in document
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise OrganizerError(
            f"{folder} is not the folder of a run, or one of its files cannot be read.",
            cure="Name a folder that `score` has written, such as results/all/mine_20260314_120000.",
            code="runs.no_run",
        ) from error
    if len(found) < len(tasks):
        raise OrganizerError(
            f"The run {folder} has no fold scores. Without them, the uncertainty of a difference is unknown.",
            cure="Score it again with output_fold_results: true.",
            code="runs.no_folds",
        )
    return {task: one for task, one in found.items() if np.isfinite(one.folds).any()}


def _task(document: Mapping[str, Any], place: Path) -> TaskFolds:
    folds = np.array([np.nan if fold is None else fold for fold in document["q_t"]], dtype=np.float64)
    q = document["q_stat"]
    return TaskFolds(
        q=float("nan") if q is None else float(q),
        folds=folds,
        splits=str(document.get("splits", place)),  # a run without this hash is paired with no other
        labels=str(document.get("labels", place)),
    )
