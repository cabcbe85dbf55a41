"""Read label files as NeuCo-Bench does, and label files of several classes or labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.columns import by_number
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.faults import ID_NAMES
from scoring.inputs.lines import FLOAT32_MAX, MISSING, NUMBER
from scoring.inputs.tables import LabelRow, read_label_rows
from scoring.printable import count_of, name_some
from scoring.tasks import TaskType, check_groups, is_package, typed
from scoring.tasks.packages import TaskPackage, read_package

KINDS = {
    "regr": TaskType.REGRESSION,
    "regression": TaskType.REGRESSION,
    "cls": TaskType.CLASSIFICATION,
    "classification": TaskType.CLASSIFICATION,
    "multiclass": TaskType.MULTICLASS,
    "multilabel": TaskType.MULTILABEL,
}
LIKE_LABELS = re.compile(rf"[^.].*__({'|'.join(KINDS)})\..+", re.IGNORECASE)
CLASSES = (
    "Write two classes as 0 and 1. Of more classes, make one task of two classes for each; or, only for `score`, give the task"
    f" {typed('multiclass')}."
)
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
        groups: The group of each row, of which all are in the same part of a split; empty if rows have no groups.
    """

    name: str
    kind: TaskType
    ids: tuple[str, ...]
    labels: NDArray[Any]
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """The content of all label files: the tasks by name, the packages among them, and warnings."""

    tasks: tuple[LabeledTask, ...]
    packages: tuple[TaskPackage, ...]
    warnings: tuple[str, ...]


def read_annotations(path: Path, id_column: str | None = None) -> Labels:
    """Read one label file ``<task>__<type>.csv``, or all label files and task packages of a folder.

    Ids are in the column ``id_column``; in a file without it, in the usual one.

    Raises:
        OrganizerError: If there are no label files, or one cannot be used.
    """
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    packages = tuple(read_package(file) for file in files if is_package(file))
    sources = [
        *((package.identifier, package.type, package.labels) for package in packages),
        # not ._ files, which macOS adds
        *(_source(file) for file in files if file.suffix == ".csv" and not file.name.startswith(".")),
    ]
    unread = [file.name for file in files if file.suffix != ".csv" and LIKE_LABELS.match(file.name)]
    if not sources:
        raise OrganizerError(
            f"{path} does not contain a label file{f', only {name_some(unread, 3)}' if unread else ''}.",
            hint="Name the folder with the label files <task>__regr.csv and <task>__cls.csv, not compressed, or one of these files.",
            code="standalone.no_labels",
        )
    repeated = [name for name, count in Counter(name for name, *_ in sources).items() if count > 1]
    if repeated:
        raise OrganizerError(
            f"Two files in {path} belong to the task {repeated[0]}.",
            hint="Keep one of them.",
            code="standalone.duplicate_task",
        )
    content = [read_labels(file, name, kind, id_column) for name, kind, file in sorted(sources)]
    of_files = zip(sorted(sources), content, strict=True)
    check_groups(((file, task.ids, task.groups) for (_, _, file), (task, _) in of_files), id_names(id_column))
    return Labels(
        tasks=tuple(task for task, _ in content),
        packages=packages,
        warnings=(
            *(warning for _, warnings in content for warning in warnings),
            *(f"{name} was not read, because names of label files end with .csv." for name in unread),
        ),
    )


def _source(file: Path) -> tuple[str, str, Path]:
    name, _, kind = file.stem.rpartition("__")
    if not names_a_folder(name):
        raise OrganizerError(
            f"{file} is not named after a task and its type.",
            hint="Name it <task>__regr.csv or <task>__cls.csv, in UTF-8, or move it out of the folder.",
            code="standalone.bad_name",
        )
    return name, kind, file


def names_a_folder(name: str) -> bool:
    """Return whether a name can be that of a folder of results; half a character, from a name that is not UTF-8, cannot be written."""
    return name not in {"", ".", ".."} and not re.search("[/\\\\\0\ud800-\udfff]", name)


def read_labels(
    path: Path, name: str, type_name: str, id_column: str | None = None
) -> tuple[LabeledTask, tuple[str, ...]]:
    """Read one label file, and return it with warnings.

    A row without a label is left out, as in NeuCo-Bench; of several labels, only one with a word such as NA.

    Raises:
        OrganizerError: If the type is unknown or the file cannot be used.
    """
    kind = KINDS.get(type_name.lower())
    if kind is None:
        raise OrganizerError(
            f"{path} has the unknown task type {type_name!r}.",
            hint=f"Use one of: {', '.join(KINDS)}.",
            code="standalone.bad_type",
        )
    rows = read_label_rows(path, id_names(id_column))
    # of several labels, a sample may have none
    absent = MISSING - {""} if kind is TaskType.MULTILABEL else MISSING
    labeled = [row for row in rows if row.label.casefold() not in absent]
    ids, texts = tuple(without_suffix(row.identifier) for row in labeled), [row.label for row in labeled]
    groups = tuple(row.group for row in labeled if row.group)
    if not labeled:
        raise OrganizerError(
            f"{path} has no labels.",
            hint="Write a row for each sample, or remove the file.",
            code="standalone.no_labels",
        )
    if not kind.has_columns:
        _check_numbers(path, labeled)
    if kind is TaskType.CLASSIFICATION and len(values := set(map(float, texts))) > 2:
        raise OrganizerError(
            f"{path} is of a task of two classes, but has {len(values)} different labels.",
            hint=f"{CLASSES} A regression needs {typed('regr')}.",
            code="standalone.not_classes",
        )
    labels, classes = _encoded(texts, kind, name)
    task = LabeledTask(name=name, kind=kind, ids=ids, labels=labels, classes=classes, groups=groups)
    words = sorted({row.label for row in rows} - {"", *texts})
    meaning = (
        f"; {name_some(words, 3)} {'counts' if len(words) == 1 else 'count'} as missing" if words else ""
    )
    return task, tuple(remarks(name, ids, missing=len(rows) - len(labeled), meaning=meaning))


def remarks(name: str, ids: Sequence[str], *, missing: int, meaning: str = "") -> Iterator[str]:
    """Yield what a reader should know of a task: its rows without a label, with words that mean this, and repeated ids."""
    if missing:
        yield f"{name}: {count_of(missing, 'row without a label was', 'rows without a label were')} left out{meaning}."
    if repeated := len(ids) - len(set(ids)):
        yield (
            f"{name}: {count_of(repeated, 'row repeats', 'rows repeat')} an id; a sample in both parts of a split leaks its label."
        )


def _encoded(texts: list[str], kind: TaskType, task: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    if kind in {TaskType.REGRESSION, TaskType.CLASSIFICATION}:
        return np.array([*map(float, texts)], dtype=np.float64), ()
    sets = (
        [[class_name(text)] for text in texts] if kind is TaskType.MULTICLASS else split_labels(texts, task)
    )
    classes = sorted_classes({name for names in sets for name in names})
    if len(classes) < 2:
        raise OrganizerError(
            f"The task {task} has fewer than two classes.",
            hint="Add samples of another class, or remove the file.",
            code="standalone.one_class",
        )
    if kind is TaskType.MULTICLASS and 2 * len(classes) >= len(texts):
        raise OrganizerError(
            f"The labels of the task {task} would be {len(classes)} classes for {count_of(len(texts), 'sample')}.",
            hint=f"A regression needs {typed('regr', task)}; otherwise, merge the rare classes.",
            code="standalone.too_many_classes",
        )
    labels = indicators(sets, classes)
    return (labels.argmax(axis=1) if kind is TaskType.MULTICLASS else labels), classes


def class_name(text: str) -> str:
    """Return the name of a class without spaces around it, and without decimals if it is a whole number: 1.0 is the class 1."""
    return re.sub(r"\A([+-]?[0-9]+)\.0*\Z", r"\1", text.strip())


def split_labels(texts: Sequence[str], task: str) -> list[list[str]]:
    """Return the labels in each of the texts, such as ``a;b``.

    Raises:
        OrganizerError: If one is a list as a program prints it, or only other signs separate labels; each text would be one label.
    """
    printed = [text for text in texts if text.lstrip().startswith(("[", "(", "{"))]
    is_separated = any(SEPARATOR in text for text in texts)
    joined = [] if is_separated else [text for text in texts if "," in text or "|" in text]
    for odd, what in (
        (printed, "is a list as a program prints it"),
        (joined, "would be one, with its commas or bars"),
    ):
        if odd:
            raise OrganizerError(
                f"A label of the task {task} {what}: {odd[0][:40]!r}.",
                hint="Write the names of its labels with semicolons between them, such as forest;water.",
                code="standalone.bad_label",
            )
    return [[class_name(part) for part in text.split(SEPARATOR) if part.strip()] for text in texts]


def indicators(sets: Iterable[Iterable[str]], classes: Sequence[str]) -> NDArray[np.float32]:
    """Return a row for each sample: 1 in the columns of its labels, 0 in the others."""
    return np.array([[name in names for name in classes] for names in map(set, sets)], dtype=np.float32)


def id_names(id_column: str | None) -> tuple[str, ...]:
    """Return the names that a column with ids may have, the preferred first."""
    return ID_NAMES if id_column is None else (id_column, *ID_NAMES)


def sorted_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of classes in their order: numbers first, by value."""
    return tuple(
        sorted(names, key=lambda name: (0, by_number(name), name) if name.isdecimal() else (1, (0, ""), name))
    )


def _check_numbers(path: Path, rows: Iterable[LabelRow]) -> None:
    for row in rows:
        if not (NUMBER.match(row.label) and abs(float(row.label)) <= FLOAT32_MAX):
            raise OrganizerError(
                f"{path}, line {row.line} (id {row.identifier}): the label {row.label[:40]!r} is not a finite number in float32.",
                hint=f"Write numbers with a decimal point. {CLASSES}",
                code="standalone.bad_label",
            )
