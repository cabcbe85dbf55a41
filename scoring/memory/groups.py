"""The argument ``groups``: which samples belong together, so that no split parts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scoring.errors import WrongType, WrongValue
from scoring.inputs.faults import GROUP_NAMES
from scoring.memory.containers import plain
from scoring.memory.given import one_by_one, without_ids
from scoring.memory.pairing import (
    SHOWN,
    Rows,
    as_text,
    note_on_position,
    rows_of_index,
)
from scoring.neuco_bench.labels import Labels
from scoring.printable import count_of, name_some


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenGroups:
    """The group of each row, empty if it is missing."""

    rows: Rows
    values: tuple[str, ...]


def take_column(table: Any, name: str, column: str, id_column: str | None) -> tuple[Any, GivenGroups | None]:
    """Return a table without its column of groups, and the groups; None if this is no table with such a column."""
    if not isinstance(table, pd.DataFrame) or column not in table.columns:
        return table, None
    _, rows = without_ids(table, name, id_column)
    return table.drop(columns=column), GivenGroups(rows=rows, values=tuple(map(as_text, table[column])))


def refuse_column(tasks: Collection[str]) -> None:
    """Refuse a task among others that may be a column of groups.

    Raises:
        WrongValue: If there is one.
    """
    names = [name for name in tasks if name.casefold() in GROUP_NAMES]
    if names and len(tasks) > 1:
        raise WrongValue(
            f"The labels have a column {names[0]!r}, which may be a task, or say which samples belong together.",
            hint=f"Pass groups={names[0]!r}, or, if that column is not found, labels.pop({names[0]!r}), so that no split parts a group;"
            f" or rename the column, such as {names[0]}__multiclass.",
            code="score.groups",
        )


def given_groups(value: Any) -> GivenGroups:
    """Return groups in one form.

    Raises:
        WrongType: If they are not one value for each sample.
    """
    values = one_by_one(plain(value, "groups"))
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    if isinstance(values, pd.Series):
        return GivenGroups(rows=rows_of_index(values.index, "groups"), values=tuple(map(as_text, values)))
    if np.shape(values) not in {(len(values),), (len(values), 1)}:
        raise WrongType(
            "The groups are not one value for each sample.",
            hint="Give an array, a Series, a dictionary of ids and groups, or the name of a column.",
            code="score.groups",
        )
    return GivenGroups(rows=Rows(count=len(values)), values=tuple(map(as_text, np.ravel(values))))


def with_groups(
    labels: Labels, given: GivenGroups, sides: Sequence[tuple[Rows, Sequence[str]]]
) -> tuple[Labels, list[str]]:
    """Return labels with the group of each sample, and notes on how these were paired.

    Args:
        labels: The tasks.
        given: The groups: with ids, or by position.
        sides: What is in memory, embeddings first, then the labels of each task: its rows, and the names that samples have in ``labels``.

    Raises:
        WrongValue: If a sample has no group, or it is not certain which.
    """
    of_sample, notes = _by_sample(given, sides)
    samples = {identifier for task in labels.tasks for identifier in task.ids}
    if missing := sorted(identifier for identifier in samples if not of_sample.get(identifier)):
        raise WrongValue(
            f"{count_of(len(missing), 'sample has', 'samples have')} no group: {name_some(missing, SHOWN)}.",
            hint="Give the group of each sample that has a label.",
            code="score.groups",
        )
    tasks = (
        replace(task, groups=tuple(of_sample[identifier] for identifier in task.ids)) for task in labels.tasks
    )
    return replace(labels, tasks=tuple(tasks)), notes


def _by_sample(
    given: GivenGroups, sides: Sequence[tuple[Rows, Sequence[str]]]
) -> tuple[Mapping[str, str], list[str]]:
    if given.rows.are_named and (not sides or any(rows.are_named for rows, _ in sides)):
        ids = given.rows.ids or ()
        if len({*ids}) < len(ids):
            raise WrongValue(
                "The groups have an id more than once.", hint="Keep each id once.", code="score.groups"
            )
        of_id = dict(zip(ids, given.values, strict=True))
        if all(rows.are_named for rows, _ in sides):
            return of_id, []
        # Samples have the numbers of rows as their names where the embeddings have no ids.
        named = [zip(rows.ids or (), names, strict=True) for rows, names in sides if rows.are_named]
        return {name: of_id[own] for pairs in named for own, name in pairs if own in of_id}, []
    fitting = {tuple(names) for rows, names in sides if rows.count == len(given.values)}
    if len(fitting) == 1:
        notes = {
            note_on_position({"groups": given.rows, "samples": rows}, "groups")
            for rows, _ in sides
            if rows.count == given.rows.count
        }
        return dict(zip(*fitting, given.values, strict=True)), sorted(notes - {""})
    counts = ", ".join(sorted({f"{rows.count:,}" for rows, _ in sides})) or "files"
    raise WrongValue(
        f"There are {count_of(len(given.values), 'group')} without ids, which could belong to rows in different orders."
        if fitting
        else f"There are {count_of(len(given.values), 'group')} without ids, but other numbers of rows: {counts}.",
        hint="Give a Series or a dictionary with the ids of the samples.",
        code="score.groups",
    )
