"""Build the matrix of the public ids from the rows of any file format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.columns import EXTRA_COLUMNS, NUMBER_NAME, Columns, resolve_columns
from scoring.inputs.embeddings import Embeddings, content_hash, without_suffix
from scoring.inputs.faults import ID_NAMES, SHOWN, Faults, shown
from scoring.inputs.identifiers import differing_form
from scoring.inputs.lines import narrow
from scoring.printable import count_of

MOST_ROWS = 1_000_000  # in a table, unless the public list is longer; limits time, and memory for ids
MOST_FAULTS = 100_000  # more need not be counted; it bounds the time that a hopeless file takes


class MatrixBuilder:
    """Collects the rows of one file.

    Args:
        ids: The ids that are asked for; rows of others are ignored.
        dim: Number N of values per id; 0 if the file decides.
        faults: Receives the faults.
    """

    row_name = "row"  # the format's word for a row
    most_faults = MOST_FAULTS
    most_columns = EXTRA_COLUMNS  # besides the dimensions
    excluded: Collection[str] = frozenset()  # ids that are left out without a note

    def __init__(self, ids: Sequence[str], dim: int, faults: Faults) -> None:
        self.faults = faults
        self.dim = dim
        self.ids = tuple(sorted(ids, key=str.encode))
        self.index = {identifier: row for row, identifier in enumerate(self.ids)}
        self.most_rows = max(MOST_ROWS, 4 * len(ids))  # or lines
        self.matrix: NDArray[np.float32] = np.zeros((len(self.ids), dim), dtype=np.float32)
        self.first_seen = [0] * len(self.ids)
        self.without_values: list[int] = []
        self.unknown_ids = 0
        self.unknown_examples: list[str] = []
        self.suffix_removed = False
        self.extra: dict[str, tuple[int, tuple[str, ...]]] = {}  # number and first names of what is ignored
        self.ends_in_number = False
        self.from_1 = False
        self.labels: dict[int, str] = {}  # of dimensions whose columns have names
        self.rows_read = 0  # from a Parquet file, and those before it

    def resolve(self, names: Sequence[str]) -> Columns:
        """Return the meaning of the columns of a table.

        Raises:
            Unreadable: If it has no ids.
        """
        self.judge_names(names)
        return self.take(resolve_columns(names, self.dim, self.faults))

    def row(self, number: int) -> str:
        """Name a row for a message."""
        return f"{self.row_name} {number}"

    def pair(self, first: int, second: int) -> str:
        """Name two rows for a message."""
        return f"{self.row_name}s {first} and {second}"

    def judge_names(self, names: Sequence[str]) -> None:
        """Refuse a transposed table, before its names are said to be missing.

        Raises:
            Unreadable: If most columns have an id as their name.
        """
        # A number may be the name of a dimension, unless the numbers are all ids and another number of dimensions is wanted.
        are_ids = self.dim not in (0, len(self.ids)) and len(names) == len(self.ids) + 1
        ids = [
            name for name in names if self.knows(name) and (are_ids or not NUMBER_NAME.match(name.strip()))
        ]
        if len(ids) > 1 and len(ids) * 2 >= len(names):
            raise self.faults.fatal("columns.transposed", ", ".join(shown(name) for name in ids[:SHOWN]))

    def take(self, columns: Columns) -> Columns:
        """Remember for messages and notes what the columns of the table mean."""
        self.labels = {dimension: columns.label(place) for place, dimension in enumerate(columns.dimensions)}
        self.from_1 = columns.from_1
        self.extra["column"] = len(columns.extra), columns.extra_names
        return columns

    def expect(self, columns: int) -> None:
        """Check the number of columns of a table that does not name them.

        Raises:
            Unreadable: If it is wrong.
        """
        if columns != self.dim:
            raise self.faults.fatal("columns.dimension", f"found {columns:,}, expected {self.dim:,}")

    def knows(self, identifier: str) -> bool:
        """Return whether an id, as written in the file, is asked for; rows of other ids are ignored, whatever their values are."""
        return without_suffix(identifier.strip()) in self.index

    def claim(self, identifiers: Sequence[str], numbers: Sequence[int]) -> NDArray[np.intp]:
        """Record that ids occurred, and return the matrix row of each; -1 if its values are not wanted.

        Args:
            identifiers: Ids as written in the file.
            numbers: Line or row number of each, from 1.
        """
        return np.array([*map(self._target, identifiers, numbers)], dtype=np.intp)

    def miss(self, identifiers: Sequence[str], numbers: Sequence[int]) -> None:
        """Record rows that have an id but no values."""
        targets = self.claim(identifiers, numbers)
        for target, number in zip(targets.tolist(), numbers, strict=True):
            if target >= 0:
                self.without_values.append(target)
                self.faults.add("rows.no_values", f"{self.row(number)} (id {shown(self.ids[target])})")

    def assign(self, targets: NDArray[np.intp], first: int, values: NDArray[np.float32]) -> None:
        """Write values into the columns of claimed rows from ``first`` on."""
        wanted = targets >= 0
        self.matrix[targets[wanted], first : first + values.shape[1]] = values[wanted]

    def judge(
        self,
        values: NDArray[np.generic],
        identifiers: Sequence[str],
        numbers: Sequence[int],
        *,
        first_column: int = 0,
        empty: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """Return values of a binary table as float32, 0 for each that is not a finite number; these are faults if the id is asked for.

        Args:
            values: Numbers of any type, rows x columns.
            identifiers: Ids of the rows, as written.
            numbers: Number of each row, from 1.
            first_column: Dimension of the first column.
            empty: Which cells have no value, and are NaN; None if all have one.
        """
        cells = narrow(values)
        odd = ~np.isfinite(cells)
        if not odd.any():
            return cells
        bad = odd.copy()
        for row in np.flatnonzero(odd.any(axis=1)).tolist():
            bad[row] &= self.knows(identifiers[row])
        kinds = (
            ("cells.empty", np.zeros_like(bad) if empty is None else empty),
            ("cells.nan", np.isnan(cells)),
            ("cells.range", np.isfinite(values)),
            ("cells.infinite", odd),
        )
        for code, kind in kinds:
            places = np.argwhere(bad & kind)
            bad &= ~kind
            examples = (
                f"{self.row(numbers[row])} (id {shown(identifiers[row])}), column {self.labels.get(dimension, dimension)}"
                for row, column in places[:3].tolist()
                for dimension in [first_column + column]
            )
            if len(places):
                self.faults.add(code, *examples, count=len(places))
        cells[odd] = 0.0
        return cells

    def _target(self, written: str, number: int) -> int:
        trimmed = written.strip()
        identifier = without_suffix(trimmed)
        self.suffix_removed |= identifier != trimmed
        row = self.index.get(identifier, -1)
        if row >= 0 and not self.first_seen[row]:
            self.first_seen[row] = number
            return row
        if row >= 0:
            self.faults.add(
                "rows.duplicate", f"{shown(identifier)} on {self.pair(self.first_seen[row], number)}"
            )
        elif identifier in ID_NAMES:
            self.faults.add("rows.header", self.row(number))
        elif identifier and identifier not in self.excluded:
            self.unknown_ids += 1
            if len(self.unknown_examples) < SHOWN:
                self.unknown_examples.append(trimmed)
        elif not identifier:
            self.faults.add("rows.no_id", self.row(number))
        return -1

    def finish(self) -> Embeddings:
        """Check the submission as a whole and return its embeddings; call it after everything was read.

        Raises:
            ParticipantError: If there are faults.
        """
        self._check_missing()
        if not self.faults and has_equal_rows(self.matrix):
            self.faults.add("values.constant")
        if self.faults:
            raise self.faults.verdict()
        # Adding 0.0 turns -0.0 into 0.0, so that both spellings of zero have the same score and hash.
        self.matrix += np.float32(0.0)
        return Embeddings(
            ids=self.ids,
            matrix=self.matrix,
            content_hash=content_hash(self.ids, self.matrix),
            notes=tuple(self.notes()),
            zarr_suffix_removed=self.suffix_removed,
        )

    def _check_missing(self) -> None:
        missing = [
            identifier for identifier, number in zip(self.ids, self.first_seen, strict=True) if not number
        ]
        if not missing:
            return
        if len(missing) == len(self.ids) and not self.unknown_ids:
            if not self.faults:
                self.faults.add("rows.none")
        elif form := differing_form(self.unknown_examples, missing):
            self.faults.add("rows.form", *form[1], count=len(missing))
            self.faults.details["rows.form"] = form[0]
        else:
            self.faults.add("rows.missing", *map(shown, missing[:3]), count=len(missing))
            if self.unknown_examples:
                self.faults.details["rows.missing"] = (
                    f"not in the list, but in the file: {', '.join(map(shown, self.unknown_examples))}"
                )
            elif self.ends_in_number:
                self.faults.details["rows.missing"] = "the file ends within a line, so it may be cut off"

    def notes(self) -> list[str]:
        """Return what was ignored or corrected."""
        notes = [".zarr or .zarr.zip suffixes were removed from ids"] if self.suffix_removed else []
        return [*notes, *self.notes_on_ids("in the public list"), *self.notes_on_table()]

    def notes_on_ids(self, place: str) -> list[str]:
        """Return which ids were ignored because they are not where they are looked up."""
        words = f"id that is not {place} was", f"ids that are not {place} were"
        return _ignored(*words, self.unknown_ids, [*map(shown, self.unknown_examples)])

    def notes_on_table(self) -> list[str]:
        """Return what was ignored besides ids."""
        notes = [
            note
            for word, (count, names) in self.extra.items()
            for note in _ignored(f"extra {word} was", f"extra {word}s were", count, names)
        ]
        if self.from_1:
            notes.append(f"the columns 1 to {self.dim} were read as 0 to {self.dim - 1}")
        if self.ends_in_number:
            notes.append("the file ends within a line, so its last number may be cut off")
        return notes


def _ignored(singular: str, plural: str, count: int, names: Sequence[str]) -> list[str]:
    more = "; and so on" if count > len(names) else ""
    return [f"{count_of(count, singular, plural)} ignored: {'; '.join(names)}{more}"] if count else []


def has_equal_rows(rows: Iterable[NDArray[np.float32]]) -> bool:
    """Return whether all rows are equal, so that they tell nothing about the samples."""
    return all(np.array_equal(row, following) for row, following in pairwise(rows))
