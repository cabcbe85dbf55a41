"""Read embeddings as NeuCo-Bench does, with the code that reads submissions, and a warning for what a challenge would refuse.

Cells that are not numbers become 0, and samples without an embedding drop out of their tasks, both before the standardization, as in
NeuCo-Bench. A file whose scores would mean nothing is refused, in the words of a challenge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import digits

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.documents import contents
from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.inputs.columns import Columns, resolve_any_columns
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.faults import CATALOGUE, SHOWN, Faults, Unreadable, shown
from scoring.inputs.identifiers import differing_form
from scoring.inputs.matrix_builder import MatrixBuilder, has_equal_rows
from scoring.inputs.sniffing import parquet_parts
from scoring.inputs.tables import read_table
from scoring.neuco_bench.labels import id_names
from scoring.printable import count_of, name_some

ANY_NUMBER = 1 << 40  # no limit, because users run this on their own files
ZEROS = ("cells.text", "cells.comma", "cells.characters", "cells.list", "cells.empty", "cells.nan")
"""Faults of cells that count as 0."""
LEFT_OUT = ("rows.no_id", "rows.no_values")
"""Faults of rows that do not count."""
REFUSED = CATALOGUE.keys() - {*ZEROS, *LEFT_OUT, "cells.boolean"}
NAMES_SHOWN = 10
SEPARATE = "if the files are embeddings of their own, score them one by one"
FEWEST_COUNTED = 5  # rows; in fewer, values could count them by chance


@dataclass(frozen=True, kw_only=True, eq=False)
class LenientEmbeddings:
    """Embeddings of the ids that any label file names.

    Attributes:
        ids: One per row, sorted by their UTF-8 bytes.
        matrix: float32, n x N, finite, not standardized.
        warnings: What a challenge would have refused or ignored.
        notes: What a reader should know, although nothing is wrong.
        names: Names of the dimensions if they are not numbers, as in the file.
    """

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def dimension(self, column: int) -> str:
        """Name a dimension for a message."""
        return f"column {shown(self.names[column])}" if self.names else f"column {column}"


def read_embeddings(
    path: Path,
    wanted: Collection[str],
    *,
    embedding_dim: int | None = None,
    exclude: Collection[str] = (),
    id_column: str | None = None,
) -> LenientEmbeddings:
    """Read embeddings from CSV (also .gz and .zip), Parquet or NPZ (arrays ``ids`` and ``embeddings``).

    Args:
        path: The file, or a folder of Parquet files ``*.parquet``, which are the parts of one table.
        wanted: Ids that a label file names; others are left out.
        embedding_dim: Dimension N; narrower embeddings are padded with zeros. None takes the file's.
        exclude: Ids to leave out, from NeuCo-Bench's ``--exclude_file``.
        id_column: Name of the column with the ids; in a file without it, they are in the usual one.

    Raises:
        ParticipantError: If the file is not a table of embeddings, is wider than ``embedding_dim``, or its scores would mean nothing.
        InfrastructureError: If the file cannot be opened.
    """
    rows = _WantedRows(wanted, exclude, embedding_dim)
    rows.faults.id_names = id_names(id_column)
    place = path.name
    parts, others = parquet_parts(path)
    rows.extra["file"] = len(others), tuple(map(shown, others[:SHOWN]))
    try:
        for file in parts or [path]:
            if parts:
                place = f"{path.name}/{file.name}"
                rows.begin(file.name)
            read_table(file, rows, max_expanded_bytes=ANY_NUMBER, is_part=bool(parts))
        place = path.name
        return rows.embeddings()
    except (ParticipantError, InfrastructureError) as error:
        raise type(error)(f"{place}: {error.sentence}", hint=error.hint, code=error.code) from error


def take_embeddings(
    ids: Sequence[str],
    table: pd.DataFrame | NDArray[np.generic],
    wanted: Collection[str],
    *,
    embedding_dim: int | None = None,
    exclude: Collection[str] = (),
    extra: Sequence[str] = (),
) -> LenientEmbeddings:
    """Take embeddings that are in memory, by the rules for files.

    Args:
        ids: One per row, distinct.
        table: A data frame of numbers with named columns, or an array, n x N.
        wanted: As in :func:`read_embeddings`, like the rest.
        embedding_dim: Dimension N.
        exclude: Ids to leave out.
        extra: Names of columns next to an array, which are ignored.

    Raises:
        ParticipantError: As :func:`read_embeddings`.
    """
    rows = _WantedRows(wanted, exclude, embedding_dim)
    rows.faults.subject = "The embeddings have"
    try:
        if isinstance(table, pd.DataFrame):
            rows.faults.id_names = ("\0",)  # the table has no column of this name, but perhaps id
            columns = rows.resolve(("\0", *map(str, table.columns)))
            table = table.iloc[:, [position - 1 for position in columns.positions]].to_numpy()
        else:
            rows.expect(table.shape[1])
            rows.extra["column"] = len(extra), tuple(map(shown, extra[:SHOWN]))
    except Unreadable:
        raise rows.faults.verdict() from None
    rows.refuses_counting = True
    targets = rows.claim(ids, range(1, len(ids) + 1))
    rows.assign(targets, 0, rows.judge(table, ids, range(len(ids))))
    return rows.embeddings()


def read_excluded(path: Path) -> frozenset[str]:
    """Read ids to leave out, one per line.

    Raises:
        OrganizerError: If the file cannot be read.
    """
    try:
        lines = contents(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OrganizerError(
            f"The list of excluded ids {path} cannot be read.",
            hint="Use a UTF-8 text file with one id per line.",
            code="standalone.no_exclude_file",
        ) from error
    return frozenset(without_suffix(line.strip()) for line in lines if line.strip())


class _WantedRows(MatrixBuilder):
    """Collects the rows of the ids that label files name, in a matrix as wide as the file's or as the configuration says.

    The rows may come from several Parquet files with the same columns, whose rows are numbered one after the other.

    Args:
        wanted: The ids.
        exclude: Ids to leave out.
        width: Columns of the matrix; None takes the file's number.
    """

    most_faults = ANY_NUMBER
    most_columns = 1_000_000

    def __init__(self, wanted: Collection[str], exclude: Collection[str], width: int | None) -> None:
        super().__init__(tuple(frozenset(wanted) - frozenset(exclude)), 0, Faults())
        self.excluded = exclude
        self.most_rows = ANY_NUMBER
        self._width = width
        self._names: tuple[str, ...] = ()  # of dimensions whose names are not numbers
        self.refuses_counting = True
        self._notes: list[str] = []
        self._parts: list[tuple[int, str]] = []  # rows before each part, and its name
        self._columns: Columns | None = None
        self._all_names: list[str] = []  # of the columns of the first part

    def begin(self, part: str) -> None:
        """Expect the rows of a part."""
        self._parts.append((self.rows_read, part))

    def row(self, number: int) -> str:
        """Name a row for a message."""
        if not self._parts:
            return super().row(number)
        before, part = self._parts[bisect_left(self._parts, (number,)) - 1]
        return f"row {number - before} of {part}"

    def pair(self, first: int, second: int) -> str:
        """Name two rows for a message."""
        if not self._parts:
            return super().pair(first, second)
        if first <= self._parts[-1][0]:
            self.faults.details["rows.duplicate"] = SEPARATE
        return f"{self.row(first)} and {self.row(second)}"

    def judge_names(self, names: Sequence[str]) -> None:
        """Refuse a transposed table, and a part with other columns than the first one.

        Raises:
            Unreadable: If most columns have an id as their name.
            ParticipantError: If a column differs.
        """
        super().judge_names(names)
        first = self._all_names = self._all_names or list(names)
        if list(names) == first:
            return
        missing, more = (
            [name for name in ours if name not in theirs] for ours, theirs in ((first, names), (names, first))
        )
        if missing:
            sentence = f"It has no column {shown(missing[0])}, but {self._parts[0][1]} has one."
        elif more:
            sentence = f"It has a column {shown(more[0])}, but {self._parts[0][1]} has none."
        else:
            sentence = f"Its columns are in another order than those of {self._parts[0][1]}."
        raise self._differing(sentence)

    def _differing(self, sentence: str) -> ParticipantError:
        return ParticipantError(
            sentence,
            hint=f"Write all parts with the same columns; {SEPARATE}.",
            code="standalone.parts",
        )

    def resolve(self, names: Sequence[str]) -> Columns:
        """Return the meaning of the columns of a table."""
        self.judge_names(names)
        if self._columns:
            return self._columns
        self._columns = columns = self.take(resolve_any_columns(names, self.faults))
        self.expect(len(columns.dimensions))
        names = tuple(columns.names[position] for position in columns.positions)
        if all(name.isdecimal() for name in names):
            self.refuses_counting = False  # as NeuCo-Bench, which only knows such names
            cause = f"The columns are not numbered 0 to {len(names) - 1}"
            numbers = [str(dimension + columns.from_1) for dimension in columns.dimensions]
            odd = [
                name
                for name, number in zip(names, numbers, strict=True)
                if name.lstrip("0") != number.lstrip("0")
            ]
        else:
            self._names = names
            cause = "No column has a number as its name"
            stems = Counter(name.rstrip(digits) for name in names)
            odd = [name for name in names if name[-1:] not in digits or stems[name.rstrip(digits)] == 1]
        if odd:
            self._notes.append(
                f"{cause}, so all are dimensions, also {name_some([*map(shown, odd)], NAMES_SHOWN)}."
            )
        return columns

    def expect(self, columns: int) -> None:
        """Make room for rows of this width.

        Raises:
            ParticipantError: If they are too wide, or not as wide as those of the first part.
        """
        if self.dim and columns != self.dim:
            raise self._differing(
                f"It has {count_of(columns, 'dimension')}, but {self._parts[0][1]} has {self.dim:,}."
            )
        if self.dim:
            return
        width = self._width or columns
        if columns > width:
            raise ParticipantError(
                f"The embeddings have {count_of(columns, 'dimension')}, but embedding_dim is {width}.",
                hint="Correct embedding_dim, or leave it out.",
                code="standalone.too_wide",
            )
        self.dim = columns
        self.matrix = np.zeros((len(self.ids), width), dtype=np.float32)

    def embeddings(self) -> LenientEmbeddings:
        """Return what was read.

        Raises:
            ParticipantError: If its scores would mean nothing.
        """
        for row in self.without_values:
            self.first_seen[row] = 0
        present = np.flatnonzero(self.first_seen)
        self._check_rows(len(present))
        matrix = self.matrix if len(present) == len(self.ids) else self.matrix[present]
        self._check_values(matrix)
        read = LenientEmbeddings(
            ids=tuple(self.ids[row] for row in present),
            matrix=matrix,
            warnings=tuple(self._warnings(matrix)),
            notes=(*self._notes, *map(_as_sentence, self.notes_on_ids("in the labels"))),
            names=self._names,
        )
        for column in counting_columns(matrix[:, : self.dim], np.array(self.first_seen)[present]):
            sentence = f"The {read.dimension(column)} of the embeddings only counts the rows."
            if self.refuses_counting:
                raise ParticipantError(
                    sentence,
                    hint="Remove it: it is an index, not a dimension.",
                    code="standalone.row_numbers",
                )
            read = replace(read, warnings=(*read.warnings, sentence))
        return read

    def _check_rows(self, present: int) -> None:
        """Refuse faults that have no meaning as numbers, and embeddings of no labeled id."""
        faults = self.faults
        if faults.counts.keys() & REFUSED:
            raise faults.verdict(REFUSED)
        if present:
            return
        if self.without_values:
            raise faults.verdict({"rows.no_values"})
        if not self.unknown_ids and not self.excluded:
            faults.add("rows.none")
            raise faults.verdict({"rows.none"})
        differs = ", except ones that are left out"
        if form := differing_form(self.unknown_examples, self.ids):
            differs = f": it has {form[1][0]}, so {form[0]}"
        elif self.unknown_examples and self.ids:
            differs = (
                f"; the first ids of both are {shown(self.unknown_examples[0])} and {shown(self.ids[0])}"
            )
        raise ParticipantError(
            f"No id of the embeddings has a label{differs}.",
            hint="Check the column id. The labels must use the same ids.",
            code="standalone.no_ids",
        )

    def _check_values(self, matrix: NDArray[np.float32]) -> None:
        """Refuse a matrix without numbers, and one whose rows are equal."""
        zeros = sum(count for code, count in self.faults.counts.items() if code in ZEROS)
        if zeros == len(matrix) * self.dim:
            raise self.faults.verdict()
        if len(matrix) > 1 and has_equal_rows(matrix):
            self.faults.add("values.constant")
            raise self.faults.verdict({"values.constant"})

    def _warnings(self, matrix: NDArray[np.float32]) -> Iterator[str]:
        """Yield what a challenge would have refused or ignored."""
        faults = self.faults
        effects = dict.fromkeys(ZEROS, "Scored as 0, before the embeddings are standardized.")
        effects["cells.boolean"] = "Scored as 1 and 0."
        effects |= dict.fromkeys(LEFT_OUT, "Left out.")
        for code, effect in effects.items():
            if code in faults.counts:
                yield f"{faults.sentence(code)}. {effect}"
        yield from map(_as_sentence, self.notes_on_table())
        if missing := len(self.ids) - len(matrix):
            yield f"{count_of(missing, 'labeled id has', 'labeled ids have')} no embedding; some tasks are scored on fewer samples."
        if self.dim < matrix.shape[1]:
            yield f"The embeddings have {count_of(self.dim, 'dimension')} and are padded with zeros to {matrix.shape[1]:,}."


def _as_sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def counting_columns(matrix: NDArray[np.float32], numbers: NDArray[np.intp]) -> list[int]:
    """Return the columns that count the rows: 0 to n - 1 or 1 to n in any order, or always as far from the number of the row."""
    if len(matrix) < FEWEST_COUNTED:
        return []
    steps = matrix[:FEWEST_COUNTED].astype(np.float64) - numbers[:FEWEST_COUNTED, None]
    whole = (matrix[:FEWEST_COUNTED] == np.floor(matrix[:FEWEST_COUNTED])).all(axis=0)
    candidates = np.flatnonzero((steps == steps[0]).all(axis=0) | whole)
    counted = np.arange(len(matrix))
    found = []
    for column in candidates:
        values = matrix[:, column].astype(np.float64)
        ordered = np.sort(values)
        if (np.diff(values) == np.diff(numbers)).all() or (
            ordered[0] in {0, 1} and np.array_equal(ordered - ordered[0], counted)
        ):
            found.append(int(column))
    return found
