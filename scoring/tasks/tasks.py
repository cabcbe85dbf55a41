"""Hidden downstream tasks: labels for some of the public ids."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.faults import ID_NAMES, SHOWN
from scoring.inputs.lines import FLOAT32_MAX, NUMBER
from scoring.inputs.tables import LabelRow, read_label_rows
from scoring.printable import count_of
from scoring.protocol import Recipe, framed, row_set_hash
from scoring.tasks.packages import NAME, is_package, read_package

MINIMUM_ROWS = 20  # a tenth of the rows is the test part, and R2 needs two of them
MINIMUM_GROUPS = 5
HASH_DOMAIN = b"neuco-worker task 1\0"
IGNORED = re.compile(r"\.|readme", re.IGNORECASE)  # dotfiles and a README may lie next to the labels


class TaskType(StrEnum):
    """What a probe predicts; the value is the part after ``__`` in the name of a label file."""

    REGRESSION = "regr"  # a number, scored by R2
    CLASSIFICATION = "cls"  # one of two classes, scored by F1
    MULTICLASS = "multiclass"  # one of several classes, scored by macro F1
    MULTILABEL = "multilabel"  # any number of several labels, scored by macro F1

    @property
    def has_columns(self) -> bool:
        """Whether predictions are a matrix, with a column for each class or label; only the standalone benchmark has such tasks."""
        return self in {TaskType.MULTICLASS, TaskType.MULTILABEL}


CHALLENGE_TYPES = (TaskType.REGRESSION, TaskType.CLASSIFICATION)


def typed(kind: str, task: str = "<task>") -> str:
    """Return where a task gets its type, for hints: a label file and a package say it in different places."""
    return f"the type {kind}, from the file's name {task}__{kind}.csv or in task.yaml"


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """One hidden task.

    Attributes:
        name: Identifier, the part of the file's name before ``__``.
        type: Regression or binary classification.
        ids: Labeled ids, sorted by their UTF-8 bytes.
        labels: float64, one per id; 0 and 1 for classification.
        version: SHA-256 (hex), see :func:`task_version`.
        row_set: :func:`scoring.protocol.row_set_hash` of ids and groups; tasks with equal row sets share splits.
        package: Version number of its package; 1 for a label file.
        groups: The group of each id, of which all are in the same part of a split; empty if samples have no groups.
    """

    name: str
    type: TaskType
    ids: tuple[str, ...]
    labels: NDArray[np.float64] = field(repr=False)
    version: str
    row_set: str
    package: int = 1
    groups: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rows(self) -> Iterator[LabelRow]:
        """The rows of a label file of this task, after its header."""
        groups = self.groups or ("",) * len(self.ids)
        for line, row in enumerate(zip(self.ids, self.labels.tolist(), groups, strict=True), 2):
            yield LabelRow(line, *row)

    def of_package(self, number: int) -> Task:
        """Return the task as that of a package with a version number."""
        version = task_version(self.type, self.ids, self.labels, self.groups, package=number)
        return replace(self, version=version, package=number)


def load_tasks(folder: Path, public_ids: Collection[str]) -> tuple[Task, ...]:
    """Load all tasks of a folder, sorted by name.

    Raises:
        OrganizerError: If the folder or one of its tasks cannot be used; the message names the file and the first faulty rows.
    """
    sources = task_sources(folder)
    tasks = tuple(load_task(source, public_ids) for source in sources)
    files = (read_package(source).labels if source.is_dir() else source for source in sources)
    check_groups((file, task.ids, task.groups) for file, task in zip(files, tasks, strict=True))
    return tasks


def task_sources(folder: Path) -> tuple[Path, ...]:
    """List the label files and packages of a folder, sorted by task name. Dotfiles and a README are skipped.

    Raises:
        OrganizerError: If the folder is missing or empty, holds anything else, or holds two sources for one task.
    """
    if not folder.is_dir():
        raise OrganizerError(
            f"There is no tasks folder {folder}.",
            hint="Create the folder, and put the label files into it: <task>__regr.csv or <task>__cls.csv.",
            code="tasks.missing_folder",
        )
    sources: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if IGNORED.match(path.name):
            continue
        name = read_package(path).identifier if is_package(path) else _name_and_type(path)[0]
        if name in sources:
            raise OrganizerError(
                f"{sources[name]} and {path} both belong to the task {name}.",
                hint="Keep one of them.",
                code="tasks.duplicate_task",
            )
        sources[name] = path
    if not sources:
        raise OrganizerError(
            f"The tasks folder {folder} is empty.",
            hint="Add a label file <task>__regr.csv or <task>__cls.csv (columns id,label) for each task.",
            code="tasks.empty_folder",
        )
    return tuple(path for _, path in sorted(sources.items()))


def load_task(source: Path, public_ids: Collection[str]) -> Task:
    """Load the task of one source, which is a label file or a package.

    Raises:
        OrganizerError: If the source cannot be used.
    """
    id_set = frozenset(public_ids)
    if not source.is_dir():
        name, kind = _name_and_type(source)
        return make_task(name, kind, label_rows(source), id_set, source=str(source))
    package = read_package(source)
    kind = _type(package.type, source)
    labels = package.labels
    task = make_task(package.identifier, kind, label_rows(labels), id_set, source=str(labels))
    return task.of_package(package.version)


def make_task(
    name: str, kind: TaskType, rows: Iterable[LabelRow], public_ids: frozenset[str], *, source: str
) -> Task:
    """Check labels and bring them into canonical form.

    Args:
        name: Task identifier.
        kind: Task type.
        rows: The rows, with labels as numbers, in any order.
        public_ids: The ids that may have labels.
        source: Name of the source in error messages.

    Raises:
        OrganizerError: If ids are unknown or duplicate, or labels or groups cannot be used.
    """
    rows = [row._replace(identifier=without_suffix(row.identifier)) for row in rows]
    _check_ids(rows, public_ids, source)
    if len(rows) < MINIMUM_ROWS:
        raise OrganizerError(
            f"{source} has {count_of(len(rows), 'labeled row')}, but at least {MINIMUM_ROWS} are needed.",
            hint="Label more samples, or remove the task.",
            code="tasks.too_few_rows",
        )
    ordered = sorted(rows, key=lambda row: row.identifier.encode())
    labels = np.array([row.label for row in ordered], dtype=np.float64) + 0.0  # no negative zeros
    labels = _binary(labels, rows, source) if kind is TaskType.CLASSIFICATION else _varied(labels, source)
    ids = tuple(row.identifier for row in ordered)
    groups = tuple(row.group for row in ordered if row.group)
    check_sizes(groups, source)
    return Task(
        name=name,
        type=kind,
        ids=ids,
        labels=labels,
        version=task_version(kind, ids, labels, groups),
        row_set=row_set_hash(ids, groups),
        groups=groups,
    )


def check_sizes(groups: Sequence[str], source: str) -> None:
    """Check that groups allow splits with enough samples in each test part; no groups are right, too.

    Raises:
        OrganizerError: If there are too few, or a single sample could be a test part.
    """
    sizes = sorted(Counter(groups).values())
    if groups and len(sizes) < MINIMUM_GROUPS:
        raise OrganizerError(
            f"{source} has {count_of(len(sizes), 'group')}, but at least {MINIMUM_GROUPS} are needed.",
            hint="Make smaller groups, or give none.",
            code="tasks.too_few_groups",
        )
    # After the single sample, a group joins it only if it has less than twice what is missing.
    if groups and sizes[0] == 1 and sizes[1] >= 2 * (Recipe.test_size * len(groups) - 1):
        raise OrganizerError(
            f"{source} has a group of one sample, and all others are so large that this sample would be a test part alone.",
            hint="Put the sample into another group, or make smaller groups.",
            code="tasks.single_sample",
        )


def check_groups(
    tasks: Iterable[tuple[Path, Sequence[str], Sequence[str]]], id_names: Sequence[str] = ID_NAMES
) -> None:
    """Check that tasks on the same ids have the same groups; each is given by its label file, its ids and their groups.

    Raises:
        OrganizerError: If two differ; the message names both files, and the first line, but no group, because groups are secret.
    """
    seen: dict[frozenset[str], tuple[Path, dict[str, str]]] = {}
    for source, ids, groups in tasks:
        of_id = dict(zip(ids, groups or ("",) * len(ids), strict=True))
        other, known = seen.setdefault(frozenset(of_id), (source, of_id))
        if of_id == known:
            continue
        line = next(
            row.line
            for row in read_label_rows(source, id_names)
            if known.get(without_suffix(row.identifier), "") != row.group
        )
        raise OrganizerError(
            f"{source} and {other} label the same samples, but have different groups, first on line {line} of {source}.",
            hint="Write the same groups into the column group of both files, or leave it out of both.",
            code="tasks.different_groups",
        )


def _name_and_type(path: Path) -> tuple[str, TaskType]:
    if path.suffix != ".csv" or not path.is_file():
        raise OrganizerError(
            f"{path} is neither a label file nor a task package.",
            hint="Keep only <task>__regr.csv, <task>__cls.csv, task packages (folders with task.yaml) and a README in the tasks folder.",
            code="tasks.unknown_file",
        )
    name, separator, kind = path.stem.rpartition("__")
    if not separator or not NAME.match(name):
        raise OrganizerError(
            f"{path} is not named after a task and its type.",
            hint="Name it <task>__regr.csv or <task>__cls.csv. The task's name may contain letters a to z, digits, '_', '-' and '.'.",
            code="tasks.bad_name",
        )
    return name, _type(kind, path)


def _type(kind: str, path: Path) -> TaskType:
    if kind.lower() not in CHALLENGE_TYPES:
        raise OrganizerError(
            f"{path} has the task type {kind!r}, which challenges do not score.",
            hint="Use regr for regression or cls for two classes: <task>__regr.csv, <task>__cls.csv. Split a task of several classes or"
            " labels into one task per class, such as <task>_water__cls.csv.",
            code="tasks.bad_type",
        )
    return TaskType(kind.lower())


def label_rows(path: Path) -> list[LabelRow]:
    """Read a label file, with labels as numbers. No error quotes a label, because the labels are secret.

    Raises:
        OrganizerError: If it cannot be read or a row is not an id and a finite number.
    """
    faults, rows = [], []
    for row in read_label_rows(path):
        label = float(row.label) if NUMBER.match(row.label) else math.nan
        rows.append(row._replace(label=label))
        if not abs(label) <= FLOAT32_MAX:
            faults.append(f"line {row.line} (id {row.identifier})")
    if faults:
        raise OrganizerError(
            f"{path} has {count_of(len(faults), 'row')} whose label is not a finite number in float32: {'; '.join(faults[:SHOWN])}.",
            hint="Correct or remove these rows, and write decimals with a point. Leave samples without a label out of the file, and write"
            " the two classes of a classification as 0 and 1. Split a task of several classes into one file per class.",
            code="tasks.bad_label",
        )
    return rows


def _check_ids(rows: Sequence[LabelRow], public_ids: frozenset[str], source: str) -> None:
    unknown = [f"{row.identifier} on line {row.line}" for row in rows if row.identifier not in public_ids]
    if rows and len(unknown) == len(rows):
        raise OrganizerError(
            f"{source} and the public id list have no id in common. Their first ids are {rows[0].identifier} and {min(public_ids)}.",
            hint="One of the two has another column as its ids, or writes them in another form: correct the id list or the label file.",
            code="tasks.other_ids",
        )
    if unknown:
        raise OrganizerError(
            f"{source} labels {count_of(len(unknown), 'id that is', 'ids that are')} not in the public id list:"
            f" {', '.join(unknown[:SHOWN])}.",
            hint="Remove these rows, or add the ids to the id list before the challenge starts.",
            code="tasks.unknown_ids",
        )
    first: dict[str, int] = {}
    again = [
        f"{identifier} on lines {first[identifier]} and {line}"
        for line, identifier, *_ in rows
        if first.setdefault(identifier, line) != line
    ]
    if again:
        raise OrganizerError(
            f"{source} has {count_of(len(again), 'row that repeats an id', 'rows that repeat an id')}: {', '.join(again[:SHOWN])}.",
            hint="Keep each id once. A sample in both parts of a split would leak its label.",
            code="tasks.duplicate_ids",
        )


def _varied(labels: NDArray[np.float64], source: str) -> NDArray[np.float64]:
    if labels.min() == labels.max():
        raise OrganizerError(
            f"All {len(labels)} labels in {source} are equal.",
            hint="Use other labels or remove the task, because predictions of a constant cannot be compared.",
            code="tasks.constant_labels",
        )
    return labels


def _binary(labels: NDArray[np.float64], rows: Sequence[LabelRow], source: str) -> NDArray[np.float64]:
    values = set(labels.tolist())
    pair = (-1.0, 1.0) if -1.0 in values else (0.0, 1.0)
    if not values <= set(pair):
        odd = [f"line {row.line}" for row in rows if row.label not in pair]
        raise OrganizerError(
            f"{source} is a classification task with labels other than 0 and 1 (or -1 and 1): {', '.join(odd[:SHOWN])}.",
            hint=f"Use two classes 0 and 1. A regression needs {typed('regr')}. Split a task of several classes into one two-class task"
            " per class.",
            code="tasks.not_binary",
        )
    if len(values) == 1:
        raise OrganizerError(
            f"{source} has samples of only one class in its {len(labels)} rows.",
            hint="Add samples of the other class, or remove the task.",
            code="tasks.one_class",
        )
    return np.where(labels == 1.0, 1.0, 0.0)


def task_version(
    kind: TaskType,
    ids: Sequence[str],
    labels: NDArray[np.float64],
    groups: Sequence[str] = (),
    *,
    package: int = 1,
) -> str:
    """Hash a task's type and its (id, label) rows, sorted by id; their groups, if any; and the version of its package if that is not 1.

    The formatting of the file does not matter.
    """
    digest = hashlib.sha256(HASH_DOMAIN + kind.value.encode() + b"\0")
    digest.update(framed(map(str.encode, ids)))
    digest.update(labels.astype(">f8").tobytes())
    version = digest.hexdigest()
    if groups:
        rows = row_set_hash(tuple(ids), tuple(groups))
        version = hashlib.sha256(f"neuco-worker groups 1\0{rows}\0{version}".encode()).hexdigest()
    if package == 1:
        return version
    return hashlib.sha256(f"neuco-worker package 1\0{package}\0{version}".encode()).hexdigest()
