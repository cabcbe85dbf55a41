"""Decide which label belongs to which embedding: by id if both have ids, else by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.errors import WrongValue
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.identifiers import differing_form
from scoring.memory.containers import scalar
from scoring.printable import count_of, name_some

SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of embeddings, or of the labels of a task.

    Attributes:
        count: How many.
        ids: The id of each, as text; None if they have none, as in an array.
        is_numbered: Whether the ids are the index 0 to n - 1 that pandas makes, so that nobody chose them.
        has_numbers: Whether they are any index of whole numbers, so that they may be left of such an index.
        levels: The names of the parts of an id, if it has several with names.
        candidates: The columns that may have ids although nobody says so, by name.
    """

    count: int
    ids: tuple[str, ...] | None = None
    is_numbered: bool = False
    has_numbers: bool = False
    levels: tuple[str, ...] = ()
    candidates: Mapping[str, Iterable[Any]] = field(default_factory=dict)

    @property
    def are_named(self) -> bool:
        """Whether somebody chose the ids."""
        return self.ids is not None and not self.is_numbered


def rows_of_index(index: pd.Index, name: str) -> Rows:
    """Return the rows of a table of pandas with this index."""
    has_numbers = index.nlevels == 1 and index.dtype.kind in "iu"
    levels = tuple(map(str, index.names)) if index.nlevels > 1 and None not in index.names else ()
    return Rows(
        count=len(index),
        ids=texts(index, name),
        is_numbered=has_numbers and bool((index == np.arange(len(index))).all()),
        has_numbers=has_numbers,
        levels=levels,
    )


def texts(ids: Iterable[Any], name: str) -> tuple[str, ...]:
    """Return ids as text, numbers without decimals if they are whole.

    Raises:
        WrongValue: If one is missing, or a number that may have been rounded.
    """
    ids = list(ids)
    rounded = [
        value for value in ids if isinstance(value, (float, np.floating)) and abs(np.spacing(value)) > 1
    ]
    if rounded:
        raise WrongValue(
            f"The {name} have ids that are decimal numbers too large to be exact, such as {rounded[0]:.17g}.",
            hint="Read them as whole numbers or as text: pandas makes decimals of them if one is missing.",
            code="score.rounded_id",
        )
    words = tuple(without_suffix(as_text(identifier)) for identifier in ids)
    if missing := sum(not word for word in words):
        raise WrongValue(
            f"The {name} have {count_of(missing, 'row without an id', 'rows without an id')},"
            f" first at position {words.index('')}.",
            hint="Fill in the ids, or leave these rows out.",
            code="score.no_id",
        )
    return words


def as_text(value: Any) -> str:
    """Return a value as text, a number without decimals if it is whole; empty if it is missing."""
    if isinstance(value, (str, int, np.integer)):  # the usual ids, quickly
        return str(value).strip()
    value = value.ravel()[0] if isinstance(value, np.ndarray) and value.size == 1 else scalar(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, tuple):
        return str(tuple(without_suffix(as_text(part)) for part in value))
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return ""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def pair(embeddings: Rows, labels: Rows, name: str) -> tuple[NDArray[np.intp], str]:
    """Return for each row of the labels its row of the embeddings, -1 if there is none; and a note if the caller should know how.

    Both sides have ids: rows are joined by id. One side has none, or only the index 0 to n - 1 of pandas: rows are paired by position, and
    their numbers must agree, unless labels lack rows of a table and keep its index. What could be meant in both ways is refused.

    Raises:
        WrongValue: If the numbers of rows differ, no id is common, ids repeat, or it is not certain which is meant.
    """
    found, note = _paired(embeddings, labels, name)
    for column in embeddings.candidates.keys() & labels.candidates.keys():
        own, others = ([*map(as_text, side.candidates[column])] for side in (embeddings, labels))
        are_keys = {*own} == {*others} and len({*own}) == len(own)
        if are_keys and any(own[row] != key for row, key in zip(found, others, strict=True) if row >= 0):
            raise WrongValue(
                f"Embeddings and labels have the same values in their columns {column!r}, but not in the rows that would be paired.",
                hint=f"Pass id_column={column!r}, or remove the column if it has no ids.",
                code="score.id_column",
            )
    return found, note


def _paired(embeddings: Rows, labels: Rows, name: str) -> tuple[NDArray[np.intp], str]:
    own, others = embeddings.ids, labels.ids
    if own is None or others is None:
        return _by_position(embeddings, labels, name)
    if embeddings.levels != labels.levels and sorted(embeddings.levels) == sorted(labels.levels):
        raise WrongValue(
            f"The index of the embeddings has the levels {', '.join(embeddings.levels)}, that of the labels of {name} has them in another"
            " order.",
            hint=f"Use the same order: labels.reorder_levels({[*embeddings.levels]}).",
            code="score.levels",
        )
    if own == others:
        _check_repeated(own, embeddings.count)
        return np.arange(labels.count), ""
    is_numbered = embeddings.is_numbered or labels.is_numbered
    if is_numbered and embeddings.count == labels.count:
        return _by_position(embeddings, labels, name)
    place = {identifier: row for row, identifier in enumerate(own)}
    found = np.array([place.get(identifier, -1) for identifier in others], dtype=np.intp)
    # Labels that lack some rows of the table, as ``dropna`` leaves them, keep their order; a random selection would not.
    is_unclear = labels.is_numbered or (found < 0).any() or (np.diff(found) < 0).any()
    if not own or not others or (is_numbered and is_unclear):
        raise _lengths(embeddings, labels, name)
    _check_repeated(own, embeddings.count)
    if not (found >= 0).any():
        form = differing_form(list(islice(others, SHOWN)), own)
        shown = (
            f"{form[1][0]}, so {form[0]}"
            if form
            else f"{others[0]!r} in the labels, {own[0]!r} in the embeddings"
        )
        raise WrongValue(
            f"No id of the labels of {name} is an id of the embeddings: {shown}.",
            hint="Write ids alike on both sides. To pair rows by position, give arrays: .to_numpy().",
            code="score.no_common_id",
        )
    return found, ""


def _by_position(embeddings: Rows, labels: Rows, name: str) -> tuple[NDArray[np.intp], str]:
    if embeddings.count != labels.count:
        raise _lengths(embeddings, labels, name)
    note = note_on_position({"embeddings": embeddings, f"labels of {name}": labels}, name)
    return np.arange(labels.count), note


def note_on_position(sides: Mapping[str, Rows], name: str) -> str:
    """Say that two sides are paired by position although one has ids; empty if none has, or only a selection's numbers next to an array.

    Raises:
        WrongValue: If one has the index that pandas makes and the other its numbers in another order, or the ids of one are in a column of
            the other.
    """
    [numbered, other] = sorted(sides, key=lambda side: not sides[side].is_numbered)
    own, others = sides[numbered].ids or (), sides[other].ids or ()
    if sides[numbered].is_numbered and own != others and set(own) == set(others):
        raise WrongValue(
            f"The {numbered} have the index 0 to {len(own) - 1} and the {other} the same numbers in another order, so rows could be"
            " paired by index or by position.",
            hint="If they are in the same order, call .to_numpy() on one of them. If the index is meant, sort both: .sort_index().",
            code="score.two_meanings",
        )
    chosen = [side for side, rows in sides.items() if rows.are_named]
    if not chosen:
        return ""
    ids = {*(sides[chosen[0]].ids or ())}
    [lacking] = sides.keys() - {chosen[0]}
    for column, values in sides[lacking].candidates.items():
        found = ids.intersection(map(as_text, values))
        # A few numbers may be the same by chance.
        if found == ids or not all(map(str.isdecimal, found)):
            raise WrongValue(
                f"The {lacking} have no column id, but ids of the {chosen[0]} are in their column {column!r}.",
                hint=f"Pass id_column={column!r}; if rows are in the same order, remove the column.",
                code="score.id_column",
            )
    # A selection of rows next to an array was selected from it, too; rows in another order may have been shuffled alone.
    is_selection = (
        any(sides[side].has_numbers for side in chosen)
        and all(map(str.isdecimal, ids))
        and ids != {*map(str, range(len(ids)))}
    )
    if is_selection and None in {rows.ids for rows in sides.values()}:
        return ""
    return f"{name}: rows are paired by position, because only the {chosen[0]} have ids, not the {lacking}."


def _lengths(embeddings: Rows, labels: Rows, name: str) -> WrongValue:
    counts = f"{count_of(embeddings.count, 'embedding')} and {count_of(labels.count, 'label')}"
    return WrongValue(
        f"There are {counts} of {name}, and no ids on both sides that could join them.",
        hint="Give one label for each embedding, in the same order, or both with ids, such as a pandas Series and a DataFrame with ids as"
        " their index.",
        code="score.lengths",
    )


def _check_repeated(ids: tuple[str, ...], count: int) -> None:
    if len(set(ids)) < count:
        again = [identifier for identifier, times in Counter(ids).items() if times > 1]
        raise WrongValue(
            f"The embeddings have {count_of(len(again), 'id')} more than once: {name_some(again, SHOWN)}.",
            hint="Keep each id once. If these are no ids, call .reset_index(drop=True) on embeddings and labels, which must then have"
            " the same order.",
            code="score.repeated_id",
        )


def excluded_rows(excluded: frozenset[str], sides: Sequence[tuple[Rows, Sequence[str]]]) -> frozenset[str]:
    """Return the names of samples with excluded ids: where the embeddings have no ids, these are ids of the labels, if they have some.

    Raises:
        WrongValue: If none is one, but a number of a row.
    """
    pairs = [zip(rows.ids or (), names, strict=True) for rows, names in sides if rows.are_named]
    names = {own: name for task in pairs for own, name in task}
    found = frozenset(names[own] for own in excluded if own in names)
    numbers = sorted(excluded.intersection(sides[0][1]))
    if names and numbers and not found:
        raise WrongValue(
            f"No id of the labels is to be left out, but {numbers[0]!r}, which could be the number of a row.",
            hint="Exclude ids of the labels, or give labels without ids: .to_numpy().",
            code="score.two_meanings",
        )
    return found or excluded
