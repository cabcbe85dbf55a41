"""Score what is in memory: data frames, series, dictionaries and arrays, or files.

What is in memory is read by the same code as files, so it gives the same numbers and the same messages.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from scoring.errors import OrganizerError
from scoring.neuco_bench.configuration import SAMPLE, parse_settings
from scoring.neuco_bench.labels import KINDS, SEPARATOR, read_annotations
from scoring.neuco_bench.run import SEED, RunReport, read_material, score_run
from scoring.progress import progress_bar
from scoring.tasks import TaskType

TYPED = re.compile(rf".+__({'|'.join(KINDS)})\Z", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The scores of embeddings; ``report`` has everything, also each fold's predictions."""

    report: RunReport

    @property
    def q(self) -> float:
        """Mean Q over the tasks; NaN unless every task has one."""
        return self.report.overall_q

    def to_frame(self) -> pd.DataFrame:
        """Return a row per task: its type, samples, Q, mean score and standard deviation over the folds, and the scores of all folds.

        ``enough_steps`` is false if the probe trained for too few steps, so that its score says little about the embeddings.
        """
        rows = {
            task.data.name: {
                "type": task.data.kind.value,
                "samples": len(task.data.rows),
                "q": task.quality.q,
                "score": task.quality.mean,
                "std": task.quality.std,
                "enough_steps": task.trained_enough,
                "folds": [fold.score for fold in task.folds],
            }
            for task in self.report.tasks
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")

    def __repr__(self) -> str:
        """Return mean Q, a line per task, and the warnings."""
        title, table, warned = self._parts()
        return "\n".join([title, table.to_string(index_names=False), *warned])

    def _repr_html_(self) -> str:
        title, table, warned = self._parts()
        lines = "".join(f"<p>{escape(line)}</p>" for line in warned)
        return f"<p><b>{title}</b></p>{table.to_html(escape=True)}{lines}"

    def _parts(self) -> tuple[str, pd.DataFrame, list[str]]:
        table = self.to_frame().drop(columns="folds").round({"q": 3, "score": 4, "std": 4})
        title = f"Mean Q {self.q:.3f}, mean score {self.report.overall_score:.4f}"
        return title, table, [f"Warning: {warning}" for warning in self.report.warnings]


def score(
    embeddings: Any,
    labels: Any,
    *,
    probe: str = "linear",
    folds: int = SAMPLE["k_folds"],
    seed: int = SEED,
    threads: int | None = None,
    progress: bool = True,
    **params: Any,
) -> Result:
    """Score embeddings on tasks; with seed 42, the numbers are NeuCo-Bench's.

    Args:
        embeddings: A file; a data frame with a column ``id`` or the ids as its index; a dictionary of ids and vectors; or an array, n x N.
        labels: A file ``<task>__<type>.csv`` or a folder of such files; a data frame with a column per task, and a column ``id`` or the
            ids as its index; a series; a dictionary of tasks and series or arrays; or an array. Labels without ids are in the order of the
            embeddings. Two values are two classes, texts are several classes, a table of zeros and ones is several labels, and other
            numbers are a regression; a name such as ``digit__multiclass`` says so.
        probe: Name of the probe.
        folds: Number of random splits.
        seed: Seed of splits and training.
        threads: Folds trained at the same time; None takes all cores.
        progress: Whether progress is shown at a terminal or in a notebook.
        params: The probe's parameters, such as ``epochs=20``.

    Raises:
        ParticipantError: If the embeddings cannot be used.
        OrganizerError: If labels or parameters cannot be used.
    """
    given = SAMPLE["probe_params"] if probe == "linear" else {}
    settings = parse_settings(
        {**SAMPLE, "k_folds": folds, "probe_type": probe, "probe_params": {**given, **params}}
    )
    with TemporaryDirectory() as place:
        files, folder = isinstance(embeddings, (str, PathLike)), Path(place)
        table = None if files else _with_ids(embeddings)
        submission = Path(embeddings) if table is None else folder / "embeddings.parquet"
        if table is not None:
            table.rename(columns=str).rename_axis("id").reset_index().to_parquet(submission, index=False)
        annotations = (
            Path(labels)
            if isinstance(labels, (str, PathLike))
            else _label_files(labels, table, folder / "labels")
        )
        material = read_material(submission, read_annotations(annotations), settings)
    with progress_bar("Scoring", "folds", Console(stderr=True, quiet=not progress)) as advance:
        report = score_run(material, settings, seed=seed, threads=threads, progress=advance)
    for warning in report.warnings:
        warnings.warn(warning, stacklevel=2)
    return Result(report=report)


def _indexed(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with text ids as its index; without a column of ids, its index has them."""
    table = table.set_index("id") if "id" in table else table
    return table.set_axis(table.index.astype(str), axis=0)


def _with_ids(values: Any) -> pd.DataFrame:
    """Return embeddings as a table with text ids as its index; without ids, rows are numbered."""
    if isinstance(values, pd.DataFrame):
        return _indexed(values)
    if not isinstance(values, Mapping):
        return _indexed(pd.DataFrame(np.asarray(values)))
    if set(values) == {"ids", "embeddings"}:
        return _indexed(pd.DataFrame(np.asarray(values["embeddings"]), index=np.asarray(values["ids"])))
    return _indexed(pd.DataFrame(np.stack([*map(np.asarray, values.values())]), index=[*values]))


def _label_files(labels: Any, embeddings: pd.DataFrame | None, folder: Path) -> Path:
    """Write a label file per task, and return their folder."""
    if isinstance(labels, pd.DataFrame):
        tasks: dict[str, Any] = {str(name): column for name, column in _indexed(labels).items()}
    elif isinstance(labels, Mapping):
        tasks = {str(name): values for name, values in labels.items()}
    else:
        tasks = {str(getattr(labels, "name", None) or "label"): labels}
    folder.mkdir()
    for name, values in tasks.items():
        series, kind = _labels(name, values, embeddings)
        path = folder / (f"{name}.csv" if TYPED.match(name) else f"{name}__{kind.value}.csv")
        if path.parent != folder:
            raise OrganizerError(
                f"The task {name!r} cannot have this name.",
                cure="Use a name without slashes.",
                code="score.task",
            )
        series.rename("label").rename_axis("id").to_csv(path)
    return folder


def _labels(name: str, values: Any, embeddings: pd.DataFrame | None) -> tuple[pd.Series[Any], TaskType]:
    """Return the labels of a task with their ids, and its type."""
    if not isinstance(values, pd.Series):
        array = np.asarray(values)
        is_indicator = array.ndim == 2 and np.isin(array, (0, 1)).all()
        if (
            embeddings is None
            or array.shape[:1] != (len(embeddings),)
            or not (array.ndim == 1 or is_indicator)
        ):
            raise OrganizerError(
                f"The labels of the task {name} have no ids and the shape {array.shape}, which is not one label for each embedding.",
                cure="Give a pandas Series with the ids as its index, or as many labels as embeddings, in the same order.",
                code="score.labels",
            )
        if is_indicator:
            texts = [SEPARATOR.join(map(str, np.flatnonzero(row))) for row in array]
            return pd.Series(texts, index=embeddings.index), TaskType.MULTILABEL
        values = pd.Series(array, index=embeddings.index)
    if values.dtype == bool:
        values = values.astype(int)
    if not pd.api.types.is_numeric_dtype(values):
        return values, TaskType.MULTICLASS
    return values, TaskType.CLASSIFICATION if values.nunique() == 2 else TaskType.REGRESSION
