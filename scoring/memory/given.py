"""What the caller gave: embeddings as a table with ids or without, and labels as one column for each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.errors import NeucoError, WrongType, WrongValue
from scoring.inputs.columns import NUMBER_NAME, chosen_vectors, names_an_id
from scoring.memory.containers import Plain, has_parts, plain
from scoring.memory.kinds import NUMBERS
from scoring.memory.pairing import SHOWN, Rows, as_text, rows_of_index, texts
from scoring.neuco_bench.labels import id_names
from scoring.neuco_bench.reading import FEWEST_COUNTED
from scoring.printable import count_of, name_some


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenEmbeddings:
    """Embeddings; ``table`` is an array n x N of numbers, or a data frame whose columns of numbers are numeric.

    ``extra`` has the names of what stood next to the dimensions and was ignored.
    """

    rows: Rows
    table: pd.DataFrame | NDArray[Any]
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenTask:
    """The labels of a task, of any type."""

    name: str
    rows: Rows
    values: Any


def given_embeddings(value: Any, id_column: str | None) -> GivenEmbeddings:
    """Return embeddings in one form.

    Raises:
        WrongType: If they are not numbers.
        WrongValue: If they are not one row for each sample.
    """
    value = plain(value, "embeddings")
    if isinstance(value, Mapping):
        keys = set(value)
        names = keys & {id_column} or keys & {"id", "ids"}
        wholes = keys - names if len(keys) == 2 and "ids" in keys else keys & {"embedding", "embeddings"}
        if len(names) == len(wholes) == 1:  # others are no embeddings, as in an NPZ file
            [name], [column] = names, wholes
            columns, words = _columns({name: value[name], column: value[column]}, "embeddings", name)
            others = tuple(str(key) for key in value if key not in (name, column))
            rows = Rows(count=len(words), ids=words)
            return GivenEmbeddings(rows=rows, table=_matrix(columns[column]), extra=others)
        value = with_ids(value, "embeddings", id_column)
        if isinstance(value, Mapping):
            words = texts(value, "embeddings")
            try:
                matrix = _matrix(plain([*value.values()], "embeddings"))
            except NeucoError:  # perhaps these are columns; a vector may be called ID, too, as that of Idaho
                _check_names("embeddings", words)
                raise
            return GivenEmbeddings(rows=Rows(count=len(words), ids=words), table=matrix)
    if isinstance(value, pd.DataFrame):
        table, rows = without_ids(value, "embeddings", id_column)
        numbers, others = _numbers(table)
        # A vector is no id, and to write it as text takes long.
        candidates = {column: table[column] for column in others if not _holds_vectors(table[column])}
        return GivenEmbeddings(rows=replace(rows, candidates=candidates), table=numbers, extra=others)
    if isinstance(value, pd.Series):
        return GivenEmbeddings(rows=rows_of_index(value.index, "embeddings"), table=_matrix(value))
    return GivenEmbeddings(rows=Rows(count=len(np.atleast_1d(value))), table=_matrix(value))


def given_tasks(labels: Any, id_column: str | None) -> list[GivenTask]:
    """Return the labels of each task.

    Raises:
        WrongType: If they cannot be labels.
        WrongValue: If a column is an index, or labels are not one for each sample.
    """
    labels = with_ids(labels, "labels", id_column)
    if isinstance(labels, pd.DataFrame):
        table, rows = without_ids(labels, "labels", id_column)
        table = table.drop(columns=[column for column in id_names(None) if column in table])
        if [*table.columns] == ["0"]:
            table = table.rename(columns={"0": "label"})  # an array with one column, made a table
        tasks = [GivenTask(name=str(name), rows=rows, values=table[name]) for name in table]
    elif isinstance(labels, Mapping) and (not labels or any(map(has_parts, labels.values()))):
        tasks = [_task(str(name), values, id_column) for name, values in labels.items()]
        _check_names("labels", [task.name for task in tasks if not task.rows.are_named])
    else:
        name = labels.name if isinstance(labels, pd.Series) else None
        tasks = [_task(str(name or "label"), labels, id_column)]
    if len(tasks) == 1:
        return tasks
    columns = [pd.Series(task.values if np.ndim(task.values) == 1 else ()).infer_objects() for task in tasks]
    for task, column in zip(tasks, columns, strict=True):
        _check_counting(task.name, column)
    return [
        task
        if column.dtype.kind == "f"  # no ids
        else replace(task, rows=replace(task.rows, candidates={task.name: column}))
        for task, column in zip(tasks, columns, strict=True)
    ]


def with_ids(value: Any, name: str, id_column: str | None) -> Plain:
    """Return a value in a plain form; a dictionary of columns, of which one has the ids, as a table.

    Raises:
        WrongType: As :func:`scoring.memory.containers.plain`.
        WrongValue: Also if columns are not of the same length, or one has the ids in another order.
    """
    given = plain(value, name)
    if not isinstance(given, Mapping):
        return given
    keys = set(given)
    if name == "labels" and len(keys) == 2 and keys & {"id", "ids"} and keys & {"label", "labels"}:
        given = {"id" if key in {"id", "ids"} else "label": column for key, column in given.items()}
    ids = next((key for key in id_names(id_column) if key in given), None)
    if ids is None:
        return given
    columns, _ = _columns(given, name, ids)
    return pd.DataFrame({key: _column(column) for key, column in columns.items()})


def _columns(
    given: Mapping[Any, Any], name: str, ids: str
) -> tuple[dict[Any, pd.DataFrame | pd.Series | NDArray[Any]], tuple[str, ...]]:
    """Return columns with one value for each id, and the ids as text."""
    columns = {key: one_by_one(plain(column, "ids" if key == ids else name)) for key, column in given.items()}
    if isinstance(columns[ids], np.ndarray):
        columns[ids] = np.ravel(columns[ids])  # a cell array of MATLAB is a row
    words = texts(np.ravel(np.asarray(columns[ids])), name)
    checked: pd.Index = pd.RangeIndex(0)
    for key, column in columns.items():
        if np.shape(column)[:1] != (len(words),):
            raise WrongValue(
                f"The column {key!r} of the {name} does not have {count_of(len(words), 'value')}, one for each id.",
                hint="Give columns of the same length.",
                code="score.lengths",
            )
        # usually, all have the same index
        if not isinstance(column, np.ndarray) and not column.index.equals(checked):
            checked = column.index
            _check_index(checked, words, name, ids)
    return columns, words


def one_by_one(values: Plain) -> pd.DataFrame | pd.Series | NDArray[Any]:
    """Return values in their order; a dictionary as a series with its keys as the index."""
    if isinstance(values, Mapping):
        return pd.Series([*values.values()], index=pd.Index([*values], dtype=object), dtype=object)
    return values


def _task(name: str, values: Any, id_column: str | None) -> GivenTask:
    values = one_by_one(plain(values, "labels"))
    if isinstance(values, pd.DataFrame):
        values, rows = without_ids(values, "labels", id_column)
        return GivenTask(name=name, rows=rows, values=values)
    if isinstance(values, pd.Series):
        return GivenTask(name=name, rows=rows_of_index(values.index, "labels"), values=values)
    if not values.ndim:
        raise WrongType(
            f"The labels of the task {name} are one value, {values!s:.40}.",
            hint="Give one label for each sample.",
            code="score.labels",
        )
    return GivenTask(name=name, rows=Rows(count=len(values)), values=values)


def _column(values: pd.DataFrame | pd.Series | NDArray[Any]) -> Any:
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    array = np.asarray(values)
    return array if array.ndim == 1 else array.ravel() if array.shape[1:] == (1,) else [*array]


def without_ids(table: pd.DataFrame, name: str, id_column: str | None) -> tuple[pd.DataFrame, Rows]:
    """Return the columns of a table except the one with ids, and the rows.

    Raises:
        WrongValue: If names are not clear.
    """
    if table.columns.nlevels > 1:
        raise WrongValue(
            f"The columns of the {name} have {table.columns.nlevels} levels.",
            hint=f"Give each column one name: {name}.columns = ['_'.join(map(str, names)) for names in {name}.columns].",
            code="score.columns",
        )
    table = table.set_axis([str(column).strip() for column in table.columns], axis=1)
    if repeated := sorted(set(table.columns[table.columns.duplicated()])):
        raise WrongValue(
            f"Several columns of the {name} are called {name_some(repeated, SHOWN)}.",
            hint="Give each column a name of its own.",
            code="score.columns",
        )
    ids = next((column for column in id_names(id_column) if column in table.columns), None)
    if ids is not None:
        words = texts(table[ids], name)
        _check_index(table.index, words, name, ids)
        return table.drop(columns=ids), Rows(count=len(table), ids=words)
    rows = rows_of_index(table.index, name)
    if id_column is not None and rows.is_numbered:
        raise WrongValue(
            f"The {name} have no column {id_column!r}, but {name_some(list(map(repr, table.columns)), SHOWN)}.",
            hint="Correct id_column.",
            code="score.id_column",
        )
    _check_names(name, table.columns if rows.is_numbered else ())
    return table, rows


def _check_index(index: pd.Index, ids: tuple[str, ...], name: str, column: str) -> None:
    """Refuse an index that has the ids of a column, in another order; numbers may be those of rows."""
    own = () if index.dtype.kind in "iu" else tuple(map(as_text, index))
    if own != ids and set(own) == set(ids):
        raise WrongValue(
            f"The index of the {name} has the same ids as the column {column}, in another order.",
            hint=f"Remove the one that is wrong: .reset_index(drop=True), or .drop(columns={column!r}).",
            code="score.two_meanings",
        )


def _check_names(name: str, columns: Iterable[str]) -> None:
    """Refuse columns that have ids, as their names say, although nobody said that these are the ids."""
    if similar := [column for column in columns if names_an_id(column)]:
        task = f" if it is a task, call it {similar[0]}__multiclass;" if name == "labels" else ""
        raise WrongValue(
            f"The {name} have no column id, but {name_some(list(map(repr, similar)), SHOWN)}.",
            hint=f"If it has the ids, pass id_column={similar[0]!r};{task} else remove it.",
            code="score.id_column",
        )


def _check_counting(name: str, column: pd.Series[Any]) -> None:
    """Refuse a column of labels that an index became when a table was written."""
    ordered = np.sort(column.to_numpy()) if column.dtype.kind in "iuf" else np.empty(0)
    counts = len(ordered) >= FEWEST_COUNTED and np.array_equal(ordered - ordered[0], np.arange(len(ordered)))
    if name.casefold().startswith("unnamed:") or (counts and ordered[0] in {0, 1}):
        raise WrongValue(
            f"The column {name!r} of the labels only counts the rows.",
            hint="Remove it: it is an index, not a task. If it has the ids, rename it to id.",
            code="score.row_numbers",
        )


def _numbers(table: pd.DataFrame) -> tuple[pd.DataFrame | NDArray[Any], tuple[str, ...]]:
    """Return the columns that can be dimensions as numbers, or the one column of vectors as an array, and the names of the others."""
    numbered = [column for column in table.columns if NUMBER_NAME.match(column)]
    vectors = [column for column in table.columns if len(numbered) < 2 and _holds_vectors(table[column])]
    chosen = chosen_vectors(vectors)
    if len(chosen) == 1:
        whole = vectors[chosen[0]]
        return _matrix(table[whole]), tuple(column for column in map(str, table) if column != whole)
    converted, refused = {}, []
    for column in numbered or table.columns:
        try:
            converted[column] = _floats(table[column])
        except (TypeError, ValueError):
            refused.append(f"{column!r} ({'vectors' if column in vectors else _content(table[column])})")
    if refused:
        raise WrongType(
            f"{len(refused)} of the columns of the embeddings {'is' if len(refused) == 1 else 'are'} not of numbers:"
            f" {name_some(refused, SHOWN)}.",
            hint="Leave out what is not a dimension. If a column has the ids, pass id_column.",
            code="score.columns",
        )
    # not table.assign, whose time grows with the square of the number of columns
    numbers = {column: converted[column] if column in converted else table[column] for column in table}
    return pd.DataFrame(numbers), tuple(column for column in map(str, table) if column not in converted)


def _holds_vectors(column: pd.Series[Any]) -> bool:
    given = column.dropna() if column.dtype.kind == "O" else column[:0]  # lists of pyarrow, too
    return len(given) > 0 and all(
        has_parts(value) and not isinstance(value, (Mapping, Set)) for value in given
    )


def _content(column: pd.Series[Any]) -> str:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "mixed" and all(isinstance(value, Mapping) for value in column.dropna()):
        return "structs"
    return {"string": "text", "datetime64": "dates", "categorical": "categories", "empty": "nothing"}.get(
        kind, kind
    )


def _floats(values: Any) -> NDArray[Any]:
    """Return numbers as floats, missing ones as NaN.

    Raises:
        TypeError: If they are not numbers.
        ValueError: Likewise.
    """
    if isinstance(values, pd.Series):
        values = values.infer_objects()
        if pd.api.types.infer_dtype(values, skipna=True) not in NUMBERS and len(values.dropna()):
            raise TypeError
        return np.asarray(
            values.to_numpy(dtype=np.float64, na_value=np.nan)
            if values.dtype.kind != "f"
            else values.to_numpy()
        )
    if values.dtype.kind in "biuf":
        return np.asarray(values)
    if values.dtype.kind != "O":
        raise TypeError
    return np.asarray(pd.DataFrame(values).apply(_floats))


def _matrix(values: Any) -> NDArray[Any]:
    """Return embeddings without names as an array n x N."""
    if isinstance(values, pd.DataFrame):
        values = values.to_numpy()
    if isinstance(values, pd.Series):
        if not _holds_vectors(values):
            raise _shape((len(values),))
        if missing := int(values.isna().sum()):
            raise WrongValue(
                f"{missing} of the embeddings {'is' if missing == 1 else 'are'} missing.",
                hint="Leave these samples out.",
                code="score.missing",
            )
        values = [*values]
    if not isinstance(values, np.ndarray) or (
        values.ndim == 1 and values.dtype == object and values.size > 0
    ):
        values = plain([*values], "embeddings")
    if not isinstance(values, np.ndarray) or values.ndim != 2 or 0 in values.shape:
        raise _shape(np.shape(values))
    try:
        return _floats(values)
    except (TypeError, ValueError):
        raise WrongType(
            f"The embeddings are not numbers, but of the type {values.dtype}.",
            hint="Convert them: embeddings.astype(float); leave out what is not a dimension, such as ids.",
            code="score.type",
        ) from None


def _shape(shape: tuple[int, ...]) -> WrongValue:
    hint = {
        1: "Give one row for each sample; for embeddings of one dimension: embeddings.reshape(-1, 1).",
        3: "Give one row for each sample, such as the mean over one axis, embeddings.mean(axis=1), or all values,"
        " embeddings.reshape(len(embeddings), -1); join batches with numpy.concatenate.",
    }.get(min(len(shape), 3), "Give one row for each sample, n x N.")
    return WrongValue(f"The embeddings have the shape {shape}.", hint=hint, code="score.shape")


def index_of(rows: Rows) -> Iterator[str]:
    """Yield a name for each row: its id if somebody chose distinct ids, else its number."""
    ids = rows.ids if rows.are_named else None
    return iter(ids if ids and len(set(ids)) == rows.count else map(str, range(rows.count)))
