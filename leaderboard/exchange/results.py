"""``scoring.compare`` and ``scoring.rank``: the commands of the same names, for results that are in memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leaderboard.exchange.runs import Compared, TaskResult, compare_results, read_run, scored_tasks
from leaderboard.exchange.table import (
    TableRanking,
    are_other,
    check_names,
    dominating,
    is_error,
    is_summary,
    rank_table,
)
from leaderboard.ranking import LARGEST
from scoring.documents import expanded
from scoring.errors import MissingFile, WrongType, WrongValue, python_errors

if TYPE_CHECKING:
    from scoring.memory.result import Result


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ranked:
    """Entries in the order of their dynamic rank.

    Attributes:
        table: The score of each entry (row) on each task, which is Q unless a table of scores was ranked.
        ranking: The dynamic rank, and what becomes of it with other tasks.
        results: What ``scoring.score`` returned, by entry, if embeddings or results were ranked.
    """

    table: pd.DataFrame
    ranking: TableRanking
    results: Mapping[str, Result]

    @property
    def weights(self) -> pd.Series[float]:
        """The weight of each task in the ranks."""
        return pd.Series(self.ranking.weights, index=self.table.columns, name="weight")

    @property
    def without(self) -> pd.DataFrame:
        """The rank of each entry without each of the tasks; empty for one task, or if fewer than two entries compete."""
        rows = [row.without for row in self.ranking.stability]
        table = pd.DataFrame(rows, index=self.table.index if rows else None)
        return table.iloc[list(self.ranking.order)[: len(rows)]].rename_axis("entry")

    def to_frame(self) -> pd.DataFrame:
        """Return a row per entry, the best first: rank, weighted rank, mean Q, and Q on each task.

        With two tasks or more, ``p_first`` and ``keeps_order`` are the shares of resamplings of the tasks in which it is first, and in
        which it and the next entry are in the same order.
        """
        stability = self.ranking.stability
        columns: dict[str, Sequence[float | None]] = {
            "rank": self.ranking.places,
            "weighted_rank": self.ranking.weighted_ranks,
            "mean": self.ranking.means,
        }
        if stability:
            columns["p_first"] = tuple(row.p_first for row in stability)
            columns["keeps_order"] = tuple(row.keeps_order for row in stability)
        table = pd.concat([pd.DataFrame(columns, index=self.table.index), self.table], axis=1)
        return table.iloc[list(self.ranking.order)].rename_axis("entry")

    def __repr__(self) -> str:
        """Return the table, and what becomes of it without one of the tasks."""
        return f"{self.to_frame().round(3).to_string()}\n{self.ranking.sentence}".strip("\n")


def compare(first: Any, *others: Any, names: Sequence[str] | None = None) -> Compared:
    """Compare results with the first one: the difference in Q for each task and on average, with 95 % intervals.

    Results on the same labels and splits are compared fold by fold, which narrows the intervals. They reflect the random splits, not new
    data.

    Args:
        first: What ``scoring.score`` returned, or the folder of a run.
        others: One or more of these, each of which is compared with the first.
        names: A name for each, also for the first; by default A, B and so on, or those of the folders.

    Raises:
        ValueError: If there are fewer than two, or they have no task in common.
        TypeError: If one is something else.
        FileNotFoundError: If a folder is missing.
    """
    with python_errors():
        given = [first, *others]
        usual = [
            Path(each).name if isinstance(each, (str, PathLike)) else _letter(place)
            for place, each in enumerate(given)
        ]
        called = usual if names is None else [str(name) for name in names]
        if len(called) != len(given) or len(set(called)) < len(called):
            raise WrongValue(
                f"There are {len(given)} results and the names {', '.join(called)}.",
                hint="Pass names, one for each result, all different.",
                code="compare.names",
            )
        return compare_results(
            called, [scored_tasks(_tasks(each), name) for name, each in zip(called, given, strict=True)]
        )


def rank(
    entries: Any,
    labels: Any = None,
    *,
    ghost_task: float = 0.0,
    baselines: Sequence[str] = (),
    baselines_weigh: bool = True,
    **options: Any,
) -> Ranked:
    """Rank entries by their dynamic rank.

    Args:
        entries: A dictionary of names and what ``scoring.score`` returned, folders of runs, or embeddings; or a table of scores with a
            column per task, higher is better, and the names as its index.
        labels: The labels, if there are embeddings; all are then scored in this one call.
        ghost_task: δ0 of the paper's Eq. 8, which makes the weights more stable.
        baselines: Names of baselines, which get no rank.
        baselines_weigh: Whether baselines count in task weights and ranks per task.
        options: Arguments of ``scoring.score``, for embeddings.

    Raises:
        ValueError: If an entry lacks a task of the others, or arguments cannot be used.
        TypeError: If entries are something else.
        FileNotFoundError: If a file or folder is missing.
    """
    from scoring.memory import score

    baselines = [baselines] if isinstance(baselines, str) else [str(name) for name in baselines]
    with python_errors():
        results: dict[str, Any] = {}
        if not isinstance(entries, pd.DataFrame) and not (isinstance(entries, Mapping) and entries):
            raise WrongType(
                f"There are no entries in an object of the type {type(entries).__name__}.",
                hint="Give a dictionary of names and embeddings, or of results of scoring.score; or a pandas DataFrame of scores.",
                code="rank.entries",
            )
        if (labels is not None or options) and not _has_embeddings(entries, labels):
            raise WrongType(
                "Labels and arguments of scoring.score are for embeddings, and there are none.",
                hint="Leave them out.",
                code="rank.entries",
            )
        if isinstance(entries, pd.DataFrame):
            table = _checked(entries)
        else:
            labels, options = score.kept(labels), score.kept(options)
            check_names("entry", [*map(str, entries)])
            for name, given in entries.items():
                is_scored = labels is None or hasattr(given, "report")
                results[str(name)] = given if is_scored else score.score(given, labels, **options)
            tasks = {name: _tasks(given) for name, given in results.items()}
            _check_alike(tasks)
            scores = {name: {task: each.q_stat for task, each in run.items()} for name, run in tasks.items()}
            table = pd.DataFrame.from_dict(scores, orient="index", dtype=float)
        _check_complete(table)
        if largest := dominating(table):
            warnings.warn(
                f"The task {largest!r} decides the ranking alone, because its scores spread much farther than any other's.",
                stacklevel=2,
            )
        ranking = rank_table(
            table, ghost_task=ghost_task, baselines=baselines, baselines_weigh=baselines_weigh
        )
        kept = {name: given for name, given in results.items() if hasattr(given, "report")}
        return Ranked(table=table, ranking=ranking, results=kept)


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"run {place + 1}"


def _tasks(given: Any) -> dict[str, TaskResult]:
    """Return the results of each task, of a result in memory or in a folder."""
    if hasattr(given, "report") and hasattr(given, "to_dict"):
        return {name: TaskResult.model_validate(task) for name, task in given.to_dict()["tasks"].items()}
    if isinstance(given, (str, PathLike)):
        if not expanded(given).exists():
            raise MissingFile(
                f"There is no folder {given}.", hint="Check the path.", code="score.missing_file"
            )
        return read_run(expanded(given))[1]
    raise WrongType(
        f"A result is of the type {type(given).__name__}.",
        hint="Give the results in it one by one: *results.values()."
        if isinstance(given, Mapping)
        else "Give what scoring.score returned, or the folder of a run; embeddings need labels.",
        code="rank.entries",
    )


def _has_embeddings(entries: Any, labels: Any) -> bool:
    """Return whether an entry is neither a result nor, without labels, the folder of a run; a table has only scores."""
    return isinstance(entries, Mapping) and any(
        not hasattr(given, "report") and not (labels is None and isinstance(given, (str, PathLike)))
        for given in entries.values()
    )


def _check_alike(runs: Mapping[str, Mapping[str, TaskResult]]) -> None:
    """Warn of runs with other labels or splits, whose scores are not those of the same test."""
    first, *others = runs
    unlike = [
        f"{name} ({task})"
        for name in others
        for task, result in runs[name].items()
        for own in [runs[first].get(task)]
        if own and (own.labels, own.splits) != (result.labels, result.splits)
    ]
    if unlike:
        warnings.warn(
            f"Labels or splits differ from those of {first}, so scores are not of the same test: {', '.join(unlike[:3])}.",
            stacklevel=3,
        )


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of scores with texts as the names of its entries, if it is one."""
    entries, tasks = _names(table.index), _names(table.columns)
    check_names("task", tasks)
    check_names("entry", entries)
    if odd := [*compress(tasks, are_other(tasks)), *filter(is_summary, entries)]:
        raise WrongValue(
            f"The table has {odd[0]!r}, which seems to be neither a task nor an entry.",
            hint=f"Leave it out, such as with table.drop({odd[0]!r}, axis={int(odd[0] in tasks)}), or rename it.",
            code="rank.entries",
        )
    for name, kind in zip(tasks, table.dtypes, strict=True):
        if kind.kind not in "iuf":
            raise WrongType(
                f"The column {name!r} has the type {kind}, which is not one of numbers.",
                hint="Leave it out, name it as the index, or convert it with astype(float).",
                code="rank.entries",
            )
        if is_error(name):
            raise WrongValue(
                f"The column {name!r} seems to have errors, but higher scores are better.",
                hint="Leave it out, or give it negative numbers and another name.",
                code="rank.entries",
            )
    return table.set_axis(entries, axis=0)


def _names(axis: pd.Index) -> list[str]:
    """Return the names on an axis as text; a missing one is empty."""
    missing = axis.to_frame().isna().any(axis=1)
    return ["" if lacks else str(name) for name, lacks in zip(axis, missing, strict=True)]


def _check_complete(table: pd.DataFrame) -> None:
    usable = np.abs(table.to_numpy(float)) <= LARGEST
    for name, row in zip(table.index, usable, strict=True):
        if not row.all():
            raise WrongValue(
                f"{name} has no usable score in {', '.join(map(str, table.columns[~row]))}.",
                hint=f"Give all entries scores on the same tasks, of at most {LARGEST:g}, or leave this one out.",
                code="rank.incomplete",
            )
