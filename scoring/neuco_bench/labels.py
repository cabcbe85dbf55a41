"""Read label files as NeuCo-Bench does, and label files of several classes or labels."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.label_files import read_label_rows
from scoring.inputs.lines import MISSING, NUMBER
from scoring.printable import count_of
from scoring.probes.probe import TaskKind

KINDS = {
    "regr": TaskKind.REGRESSION,
    "regression": TaskKind.REGRESSION,
    "cls": TaskKind.BINARY,
    "classification": TaskKind.BINARY,
    "multiclass": TaskKind.MULTICLASS,
    "multilabel": TaskKind.MULTILABEL,
}
SEPARATOR = ";"  # separates the labels of one sample


@dataclass(frozen=True, kw_only=True, eq=False)
class LabeledTask:
    """One label file, in the order of its rows.

    Attributes:
        name: The part of the file's name before ``__``.
        kind: What is predicted.
        ids: One per labeled row.
        labels: float64 n for a regression and for two classes, int64 n (class numbers) for several classes, n x C zeros and ones for
            several labels.
        classes: Names of the C classes or labels, sorted.
    """

    name: str
    kind: TaskKind
    ids: tuple[str, ...]
    labels: NDArray[Any]
    classes: tuple[str, ...] = ()


def read_annotations(folder: Path) -> tuple[tuple[LabeledTask, ...], tuple[str, ...]]:
    """Read all label files ``<task>__<type>.csv`` and task packages of a folder.

    Returns:
        The tasks, sorted by name, and warnings.

    Raises:
        OrganizerError: If there are no label files, or one cannot be used.
    """
    if not folder.is_dir():
        raise OrganizerError(
            f"There is no folder {folder}.",
            cure="Set --annotation_path to the folder with the label files (<task>__regr.csv, <task>__cls.csv).",
            code="standalone.no_labels",
        )
    tasks: dict[str, LabeledTask] = {}
    warnings: list[str] = []
    for name, kind, path in _sources(folder):
        task, remarks = read_labels(path, name, kind)
        if name in tasks:
            raise OrganizerError(
                f"Two files in {folder} belong to the task {name}.",
                cure="Keep one of them.",
                code="standalone.duplicate_task",
            )
        tasks[name] = task
        warnings.extend(remarks)
    if not tasks:
        raise OrganizerError(
            f"{folder} does not contain a label file.",
            cure="Name them <task>__regr.csv or <task>__cls.csv, with the columns id,label.",
            code="standalone.no_labels",
        )
    return tuple(task for _, task in sorted(tasks.items())), tuple(warnings)


def _sources(folder: Path) -> list[tuple[str, str, Path]]:
    sources = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):  # also ._ files, which macOS adds
            continue
        if path.suffix == ".csv" and path.is_file():
            name, _, kind = path.stem.rpartition("__")
            if not name:
                raise OrganizerError(
                    f"{path} is not named after a task and its type.",
                    cure="Name it <task>__regr.csv or <task>__cls.csv, or move it out of the folder.",
                    code="standalone.bad_name",
                )
            sources.append((name, kind, path))
        elif (path / "task.yaml").is_file():
            from scoring.tasks.packages import read_package

            package = read_package(path)
            sources.append((package.identifier, package.type, package.labels))
    return sources


def read_labels(path: Path, name: str, kind: str) -> tuple[LabeledTask, tuple[str, ...]]:
    """Read one label file.

    A row without a label is left out, as in NeuCo-Bench. A classification with more than two different whole numbers counts as multiclass;
    NeuCo-Bench would stop.

    Raises:
        OrganizerError: If the type is unknown or the file cannot be used.
    """
    chosen = KINDS.get(kind.lower())
    if chosen is None:
        raise OrganizerError(
            f"{path} has the unknown task type {kind!r}.",
            cure=f"Use one of: {', '.join(KINDS)}.",
            code="standalone.bad_type",
        )
    rows = [(identifier, label) for _, identifier, label in read_label_rows(path)]
    warnings = []
    if chosen is not TaskKind.MULTILABEL:
        labeled = [(identifier, text) for identifier, text in rows if text.casefold() not in MISSING]
        if len(labeled) < len(rows):
            warnings.append(
                f"{name}: {count_of(len(rows) - len(labeled), 'row without a label was', 'rows without a label were')} left out."
            )
        rows = labeled
    if len(rows) < 2:
        raise OrganizerError(
            f"{path} has fewer than two labeled rows.",
            cure="Label more samples, or remove the file.",
            code="standalone.too_few_rows",
        )
    ids = tuple(without_suffix(identifier) for identifier, _ in rows)
    texts = [text for _, text in rows]
    repeated = sum(count - 1 for count in Counter(ids).values())
    if repeated:
        warnings.append(
            f"{name}: {count_of(repeated, 'row repeats', 'rows repeat')} an id; a sample in both parts of a split leaks its label."
        )
    if chosen is TaskKind.BINARY and len(values := set(_numbers(texts, path))) > 2:
        if not all(value.is_integer() for value in values):
            raise OrganizerError(
                f"{path} is a classification task with labels such as {min(values):g} and {max(values):g}.",
                cure="Number the classes 0, 1, 2 and so on, or name the file <task>__regr.csv if the task is a regression.",
                code="standalone.not_classes",
            )
        warnings.append(f"{name}: {len(values)} classes, scored by macro F1; NeuCo-Bench knows two.")
        chosen, texts = TaskKind.MULTICLASS, [str(int(value)) for value in _numbers(texts, path)]
    labels, classes = _encoded(texts, chosen, path)
    return LabeledTask(name=name, kind=chosen, ids=ids, labels=labels, classes=classes), tuple(warnings)


def _encoded(texts: list[str], kind: TaskKind, path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    if kind in {TaskKind.REGRESSION, TaskKind.BINARY}:
        return np.array(_numbers(texts, path), dtype=np.float64), ()
    sets = [
        [text]
        if kind is TaskKind.MULTICLASS
        else [part.strip() for part in text.split(SEPARATOR) if part.strip()]
        for text in texts
    ]
    classes = tuple(sorted({name for names in sets for name in names}, key=_natural))
    if len(classes) < 2:
        raise OrganizerError(
            f"{path} has fewer than two classes.",
            cure="Add samples of another class, or remove the file.",
            code="standalone.one_class",
        )
    number = {name: index for index, name in enumerate(classes)}
    if kind is TaskKind.MULTICLASS:
        return np.array([number[names[0]] for names in sets], dtype=np.int64), classes
    labels = np.zeros((len(sets), len(classes)), dtype=np.float32)
    for row, names in enumerate(sets):
        labels[row, [number[name] for name in names]] = 1.0
    return labels, classes


def _natural(name: str) -> tuple[float, str]:
    return (int(name), "") if name.isdecimal() else (math.inf, name)


def _numbers(texts: list[str], path: Path) -> list[float]:
    numbers = []
    for text in texts:
        value = float(text) if NUMBER.match(text) else math.nan
        if not math.isfinite(value):
            raise OrganizerError(
                f"{path} has the label {text[:40]!r}.",
                cure="Give finite numbers.",
                code="standalone.bad_label",
            )
        numbers.append(value)
    return numbers
