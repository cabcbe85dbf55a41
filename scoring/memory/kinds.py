"""Decide what a task predicts from its labels, and encode them; nobody is left with a choice that is not told."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.errors import WrongType, WrongValue
from scoring.inputs.lines import FLOAT32_MAX, NUMBER
from scoring.neuco_bench.labels import KINDS, class_name, indicators, sorted_classes, split_labels
from scoring.printable import count_of, name_some
from scoring.tasks import TaskType

TYPED = re.compile(rf"(.+)__({'|'.join(KINDS)})\Z", re.IGNORECASE)
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
REFUSED = {
    **dict.fromkeys(
        ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"), "dates or times"
    ),
    **dict.fromkeys(("mixed-integer", "mixed"), "of several kinds, such as numbers and texts"),
    "complex": "complex numbers",
    "interval": "intervals",
}
NAMES_SHOWN = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskKind:
    """What a task predicts.

    Attributes:
        kind: The type.
        labels: Of the labeled rows, as in :class:`scoring.neuco_bench.labels.LabeledTask`.
        classes: Names of classes or labels, sorted.
        note: What else could have been meant, and how to say so; may be empty.
    """

    kind: TaskType
    labels: NDArray[Any]
    classes: tuple[str, ...] = ()
    note: str = ""


def split_name(name: str) -> tuple[str, TaskType | None]:
    """Return the name of a task without its type, and the type, if the name says one: ``digit__multiclass``."""
    typed = TYPED.match(name)
    return (typed[1], KINDS[typed[2].lower()]) if typed else (name, None)


def decide(name: str, values: Any, declared: TaskType | None = None) -> tuple[TaskKind, NDArray[np.bool_]]:
    """Return what a task predicts, and which rows have a label.

    Only None, NaN and pandas' NA are missing. Two numbers are two classes; texts, and what pandas calls a category, are several classes; a
    table of zeros and ones is several labels; other numbers are a regression. A declared type comes first.

    Args:
        name: The task, for messages.
        values: An array, a series or a data frame, with a row for each sample.
        declared: The type that the name says.

    Raises:
        WrongType: If labels are dates, or of several kinds.
        WrongValue: If they do not fit the declared type, or are nearly as many classes as samples.
    """
    if isinstance(values, np.ndarray) and values.ndim > 1 and values.size == len(values):
        values = values.ravel()
    if np.ndim(values) > 1 and values.shape[1:] != (1,):
        return _indicators(name, values, declared)
    column = pd.Series(values.iloc[:, 0] if isinstance(values, pd.DataFrame) else values)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow  # in whose types NaN is not missing, and text with a dictionary is no text

        column = pyarrow.array(column.array).to_pandas()
    labeled = ~column.isna().to_numpy(dtype=bool)
    given = column[labeled].reset_index(drop=True).infer_objects()
    if not len(given):
        raise WrongValue(
            f"The task {name} has no labels.", hint="Give labels, or leave the task out.", code="score.labels"
        )
    kind = (
        "categorical"
        if isinstance(given.dtype, pd.CategoricalDtype)
        else pd.api.types.infer_dtype(given, skipna=True)
    )
    if kind in {"mixed", "unknown-array"} and all(
        isinstance(value, (list, tuple, set, frozenset, np.ndarray)) for value in given
    ):
        return _sets(name, given, declared), labeled
    if kind in REFUSED and (kind != "mixed" or len(set(map(type, given))) > 1):
        raise _refused(name, REFUSED[kind])
    if kind in NUMBERS and declared not in {TaskType.MULTICLASS, TaskType.MULTILABEL}:
        decided = _numbers(name, given, kind, declared)
    elif kind in {*NUMBERS, "categorical", "string", "bytes", "empty"}:
        decided = _classes(name, given, kind, declared)
    else:
        raise _refused(name, f"of the type {type(given[0]).__qualname__}")
    return decided, labeled


def _refused(name: str, what: str) -> WrongType:
    hint = (
        "Predict a number that is made from them, such as labels.dt.dayofyear."
        if what == "dates or times"
        else "Give numbers, or names of classes."
    )
    return WrongType(f"The labels of the task {name} are {what}.", hint=hint, code="score.labels")


def _numbers(name: str, given: pd.Series[Any], kind: str, declared: TaskType | None) -> TaskKind:
    """Return a regression, or two classes."""
    labels = given.astype(np.float64).to_numpy()
    if odd := int((~(np.abs(labels) <= FLOAT32_MAX)).sum()):
        raise WrongValue(
            f"The task {name} has {count_of(odd, 'label that is', 'labels that are')} infinite or too large for float32.",
            hint="Correct them, or make them NaN, so that these samples are left out.",
            code="score.labels",
        )
    distinct = np.unique(labels)
    is_pair = len(distinct) == 2 or kind == "boolean"
    if declared is TaskType.CLASSIFICATION and len(distinct) > 2:
        raise WrongValue(
            f"The task {name} has two classes, but {len(distinct)} different labels.",
            hint=f"Name it {name}__multiclass, or {name}__regr for a regression.",
            code="score.labels",
        )
    if declared is TaskType.CLASSIFICATION or (declared is None and is_pair):
        is_usual = kind == "boolean" or distinct.tolist() in ([0, 1], [-1, 1])
        note = "" if is_usual or declared else (
            f"{name}: two classes, {distinct[0]:.15g} and {distinct[-1]:.15g}, of which {distinct[-1]:.15g} is the positive one;"
            f" name it {name}__regr for a regression."
        )  # fmt: skip
        return TaskKind(kind=TaskType.CLASSIFICATION, labels=labels, note=note)
    is_whole = bool((distinct == np.floor(distinct)).all()) and 2 * len(distinct) < len(labels)
    note = (
        f"{name}: regression on {len(distinct)} whole numbers; name it {name}__multiclass for classes."
        if is_whole and declared is None and len(distinct) > 2
        else ""
    )
    return TaskKind(kind=TaskType.REGRESSION, labels=labels, note=note)


def _classes(name: str, given: pd.Series[Any], kind: str, declared: TaskType | None) -> TaskKind:
    """Return several classes, or several labels from texts such as ``a;b``."""
    words = [_class_name(value) for value in given]
    if declared is TaskType.MULTILABEL:
        return _labels(name, split_labels(words, name))
    _check_words(name, words, kind, declared)
    classes = sorted_classes(set(words))
    number = {word: place for place, word in enumerate(classes)}
    labels = np.array([number[word] for word in words], dtype=np.int64)
    return TaskKind(kind=TaskType.MULTICLASS, labels=labels, classes=classes)


def _check_words(name: str, words: list[str], kind: str, declared: TaskType | None) -> None:
    distinct = set(words)
    are_numbers = all(NUMBER.match(word) for word in distinct)
    if declared in {TaskType.REGRESSION, TaskType.CLASSIFICATION}:
        what = "as text" if are_numbers else f"such as {words[0][:40]!r}"
        raise WrongValue(
            f"The task {name} needs numbers as labels, and they are {what}.",
            hint="Convert them: labels.astype(float)."
            if are_numbers
            else f"Name it {name}__multiclass if they are classes.",
            code="score.labels",
        )
    if "" in distinct:
        raise WrongValue(
            f"The task {name} has {count_of(words.count(''), 'label that is an empty text', 'labels that are empty texts')}.",
            hint="Replace it by None if the label is missing, or by a name.",
            code="score.labels",
        )
    if len(distinct) < 2:
        raise WrongValue(
            f"All labels of the task {name} are {words[0]!r}.",
            hint="Add samples of another class, or leave the task out.",
            code="score.labels",
        )
    if 2 * len(distinct) >= len(words):
        are_texts = are_numbers and kind not in NUMBERS
        raise WrongValue(
            f"The labels of the task {name} would be {len(distinct)} classes for {count_of(len(words), 'sample')}:"
            f" {name_some(sorted(distinct), NAMES_SHOWN)}.",
            hint="They are numbers: convert them with labels.astype(float)." if are_texts
            else f"Name it {name}__regr for a regression." if are_numbers
            else "If they are ids, leave them out or name the column id; if they are classes, merge the rare ones.",
            code="score.too_many_classes",
        )  # fmt: skip


def _class_name(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return class_name(str(value))


def _sets(name: str, given: pd.Series[Any], declared: TaskType | None) -> TaskKind:
    """Return several labels from lists of their names."""
    if declared not in {None, TaskType.MULTILABEL} or not all(
        isinstance(word, str) for words in given for word in words
    ):
        raise WrongValue(
            f"The labels of the task {name} are lists.",
            hint="Give one label for each sample, or for several labels a list of names or a table of zeros and ones.",
            code="score.labels",
        )
    return _labels(name, [[word.strip() for word in words] for words in given])


def _labels(name: str, sets: list[list[str]]) -> TaskKind:
    classes = _several(name, {word for words in sets for word in words})
    return TaskKind(kind=TaskType.MULTILABEL, labels=indicators(sets, classes), classes=classes)


def _several(name: str, words: Collection[str]) -> tuple[str, ...]:
    """Return the names of labels, sorted."""
    classes = sorted_classes(words)
    if len(classes) < 2:
        raise WrongValue(
            f"The task {name} has fewer than two labels.",
            hint="Add samples, or leave the task out.",
            code="score.labels",
        )
    return classes


def _indicators(name: str, values: Any, declared: TaskType | None) -> tuple[TaskKind, NDArray[np.bool_]]:
    """Return several labels from a table with a column of zeros and ones for each."""
    columns = (
        values.columns.map(str)
        if isinstance(values, pd.DataFrame)
        else [str(number) for number in range(values.shape[1])]
    )
    try:
        if np.ndim(values) != 2 or len(set(columns)) < len(columns):
            raise ValueError
        table = np.asarray(values).astype(np.float64)
        labeled = np.asarray(~np.isnan(table).any(axis=1), dtype=np.bool_)
        table = table[labeled]
        if declared not in {None, TaskType.MULTILABEL} or not len(table) or not np.isin(table, (0, 1)).all():
            raise ValueError
    except (TypeError, ValueError):
        raise WrongValue(
            f"The labels of the task {name} have the shape {values.shape}, and are not a table of zeros and ones with a column for each"
            " label.",
            hint="Give one label for each sample. For several tasks, give a dictionary of their names and labels, or a DataFrame. For"
            " classes that are coded by zeros and ones, give the numbers of the columns: labels.argmax(axis=1).",
            code="score.labels",
        ) from None
    used = [str(column) for column, is_used in zip(columns, table.max(axis=0), strict=True) if is_used]
    classes = _several(name, used)
    place = {column: number for number, column in enumerate(columns)}
    labels = table[:, [place[column] for column in classes]].astype(np.float32)
    notes = []
    if unused := [str(column) for column in columns if column not in set(classes)]:
        notes.append(
            f"{name}: no sample has the {'label' if len(unused) == 1 else 'labels'} {name_some(unused, NAMES_SHOWN)}, which is left out."
        )
    if (labels.sum(axis=1) == 1).all():
        notes.append(
            f"{name}: several labels, of which every sample has one; for classes, name it {name}__multiclass and give the numbers of"
            " the columns: labels.argmax(axis=1)."
        )
    kind = TaskKind(kind=TaskType.MULTILABEL, labels=labels, classes=classes, note=" ".join(notes))
    return kind, labeled
