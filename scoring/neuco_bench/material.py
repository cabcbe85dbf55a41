"""What a run of the standalone benchmark scores: tasks, and the embeddings of their ids, read and put together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.lines import narrow
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import LabeledTask, Labels
from scoring.neuco_bench.reading import LenientEmbeddings, read_embeddings
from scoring.printable import name_some
from scoring.tasks import MINIMUM_ROWS, TaskType
from scoring.tasks.packages import TaskPackage

FEWEST_OTHERS = (
    5  # samples outside the largest class; with fewer, a column could have the same classes by chance
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """The tasks of a run, the embeddings of all their ids, and the task packages."""

    tasks: tuple[LabeledTask, ...]
    embeddings: LenientEmbeddings
    warnings: tuple[str, ...]
    packages: tuple[TaskPackage, ...] = ()
    notes: tuple[str, ...] = ()


def read_material(
    submission: Path,
    labels: Labels,
    settings: StandaloneSettings,
    *,
    excluded: Collection[str] = (),
    id_column: str | None = None,
    notes: Sequence[str] = (),
) -> Material:
    """Read a table of embeddings for labels that were read.

    Args:
        submission: The table.
        labels: The tasks, of which ``task_filter`` may choose some.
        settings: The configuration.
        excluded: Ids to leave out.
        id_column: Name of the column with the ids, if it is not ``id``.
        notes: What a reader should know about the labels.

    Raises:
        ParticipantError: If the embeddings cannot be used.
        OrganizerError: If ``task_filter`` names unknown tasks.
    """
    chosen_tasks(labels, settings)
    wanted = {identifier for task in labels.tasks for identifier in task.ids}
    embeddings = read_embeddings(
        submission, wanted, embedding_dim=settings.embedding_dim, exclude=excluded, id_column=id_column
    )
    return join_material(labels, embeddings, settings, excluded=excluded, notes=notes)


def chosen_tasks(labels: Labels, settings: StandaloneSettings) -> tuple[LabeledTask, ...]:
    """Return the tasks that ``task_filter`` names.

    Raises:
        OrganizerError: If it names unknown tasks.
    """
    names = [task.name for task in labels.tasks]
    unknown = sorted(set(settings.task_filter or ()).difference(names))
    if unknown:
        raise OrganizerError(
            f"task_filter names {unknown[0]!r}, which is not a task.",
            hint=f"The tasks are: {', '.join(names)}.",
            code="standalone.unknown_task",
        )
    return tuple(
        task for task in labels.tasks if settings.task_filter is None or task.name in settings.task_filter
    )


def join_material(
    labels: Labels,
    embeddings: LenientEmbeddings,
    settings: StandaloneSettings,
    *,
    excluded: Collection[str] = (),
    notes: Sequence[str] = (),
    labeled: str = "any label file names",
) -> Material:
    """Put labels and the embeddings of their ids together; ``labeled`` says in warnings where samples come from.

    If all ids to leave out are unknown, they may be written in another form, so a warning says it.

    Raises:
        OrganizerError: If ``task_filter`` names unknown tasks.
        ParticipantError: If a named column of the embeddings has the labels of a task.
    """
    tasks = chosen_tasks(labels, settings)
    warnings = [*settings.warnings, *labels.warnings, *embeddings.warnings]
    if excluded and all(set(excluded).isdisjoint(task.ids) for task in labels.tasks):
        warnings.append(
            f"No sample was left out, because none with a label has an excluded id, such as {min(excluded)!r}."
        )
    fewer = [task.name for task in tasks if not set(embeddings.ids).issubset(task.ids)]
    if fewer and settings.standardize_embeddings:
        warnings.append(
            f"The embeddings are standardized over all {len(embeddings.ids):,} samples that {labeled},"
            f" also for tasks that label fewer: {name_some(fewer, 3)}."
        )
    rows = {identifier: row for row, identifier in enumerate(embeddings.ids)}
    leaks = [
        f"The {embeddings.dimension(column)} of the embeddings has the labels of the task {task.name}."
        for task in labels.tasks
        for column in _columns_of_labels(task, embeddings, rows)
    ]
    if leaks and embeddings.names:
        raise ParticipantError(leaks[0], hint="Remove it from the embeddings.", code="standalone.leak")
    return Material(
        tasks=tasks,
        embeddings=embeddings,
        warnings=tuple(warnings),
        packages=labels.packages,
        notes=(*notes, *embeddings.notes, *leaks, *_grouped(tasks, rows)),
    )


def _grouped(tasks: Sequence[LabeledTask], rows: Mapping[str, int]) -> Iterator[str]:
    """Say which tasks have groups, and how many."""
    names: dict[int, list[str]] = {}
    for task in tasks:
        pairs = zip(task.ids, task.groups, strict=True) if task.groups else ()
        if groups := {group for identifier, group in pairs if identifier in rows}:
            names.setdefault(len(groups), []).append(task.name)
    for number, of in names.items():
        yield f"{name_some(of, 3)}: each of {number:,} groups is in one part of a split, whole."


def _columns_of_labels(
    task: LabeledTask, embeddings: LenientEmbeddings, rows: Mapping[str, int]
) -> list[int]:
    """Return the dimensions that equal the labels of a task, or are a column of its name; ``rows`` has the row of each id."""
    named = [
        column for column, name in enumerate(embeddings.names) if name.casefold() == task.name.casefold()
    ]
    pairs = [(rows[identifier], place) for place, identifier in enumerate(task.ids) if identifier in rows]
    if len(pairs) < MINIMUM_ROWS:
        return named
    index, places = np.array(pairs).T
    labels = task.labels[places].reshape(len(places), -1)
    some = slice(None, None, len(places) // MINIMUM_ROWS)  # the first may be of one class
    equal = {
        int(column)
        for values in labels.T
        if task.kind is TaskType.REGRESSION
        or len(values) - np.unique(values, return_counts=True)[1].max() >= FEWEST_OTHERS
        for column in np.flatnonzero(_equal(embeddings.matrix[index[some]], values[some], task.kind))
        if _equal(embeddings.matrix[index, column, None], values, task.kind).all()
    }
    return sorted({*named, *equal})


def _equal(columns: NDArray[np.float32], labels: NDArray[Any], kind: TaskType) -> NDArray[np.bool_]:
    """Return which columns have the labels; those of classes may be coded by any numbers."""
    if kind is TaskType.REGRESSION:
        return np.asarray((columns == narrow(labels)[:, None]).all(axis=0))
    _, first, classes = np.unique(labels, return_index=True, return_inverse=True)
    codes = columns[first]
    is_distinct = (np.diff(np.sort(codes, axis=0), axis=0) != 0).all(axis=0)
    return np.asarray(is_distinct & (codes[classes] == columns).all(axis=0))
