"""Read embeddings as NeuCo-Bench does, with the code that reads submissions, and a warning for what a challenge would refuse.

Cells that are not numbers become 0, and samples without an embedding drop out of their tasks, both before the standardization, as in
NeuCo-Bench. A file whose scores would mean nothing is refused, in the words of a challenge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.columns import Columns, resolve_any_columns
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.faults import CATALOGUE, Faults
from scoring.inputs.identifiers import differing_form
from scoring.inputs.matrix_builder import MatrixBuilder, has_equal_rows
from scoring.inputs.tables import read_table
from scoring.printable import count_of

ANY_NUMBER = 1 << 40  # no limit, because users run this on their own files
ZEROS = ("cells.text", "cells.comma", "cells.list", "cells.empty", "cells.nan")
"""Faults of cells that count as 0."""
LEFT_OUT = ("rows.no_id", "rows.no_values")
"""Faults of rows that do not count."""
REFUSED = CATALOGUE.keys() - {*ZEROS, *LEFT_OUT}


@dataclass(frozen=True, kw_only=True, eq=False)
class LenientEmbeddings:
    """Embeddings of the ids that any label file names.

    Attributes:
        ids: One per row, sorted by their UTF-8 bytes.
        matrix: float32, n x N, finite, not standardized.
        warnings: What a challenge would have refused or ignored.
    """

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]
    warnings: tuple[str, ...]


def read_embeddings(
    path: Path, wanted: Collection[str], *, embedding_dim: int | None = None, exclude: Collection[str] = ()
) -> LenientEmbeddings:
    """Read embeddings from CSV (also .gz and .zip), Parquet or NPZ (arrays ``ids`` and ``embeddings``).

    Args:
        path: The file.
        wanted: Ids that a label file names; others are left out.
        embedding_dim: Dimension N; narrower embeddings are padded with zeros. None takes the file's.
        exclude: Ids to leave out, from NeuCo-Bench's ``--exclude_file``.

    Raises:
        ParticipantError: If the file is not a table of embeddings, is wider than ``embedding_dim``, or its scores would mean nothing.
        InfrastructureError: If the file cannot be opened.
    """
    rows = _WantedRows(frozenset(wanted) - frozenset(exclude), embedding_dim)
    try:
        read_table(path, rows, max_expanded_bytes=ANY_NUMBER)
        return rows.embeddings()
    except ParticipantError as error:
        raise ParticipantError(f"{path.name}: {error.sentence}", cure=error.cure, code=error.code) from None


def read_excluded(path: Path) -> frozenset[str]:
    """Read ids to leave out, one per line.

    Raises:
        OrganizerError: If the file cannot be read.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OrganizerError(
            f"The list of excluded ids {path} cannot be read.",
            cure="Use a UTF-8 text file with one id per line.",
            code="standalone.no_exclude_file",
        ) from error
    return frozenset(without_suffix(line.strip()) for line in lines if line.strip())


class _WantedRows(MatrixBuilder):
    """Collects the rows of the ids that label files name, in a matrix as wide as the file's or as the configuration says.

    Args:
        wanted: The ids.
        width: Columns of the matrix; None takes the file's number.
    """

    most_faults = ANY_NUMBER
    most_columns = 1_000_000

    def __init__(self, wanted: Collection[str], width: int | None) -> None:
        super().__init__(tuple(wanted), 0, Faults())
        self.most_rows = ANY_NUMBER
        self._width = width

    def resolve(self, names: Sequence[str]) -> Columns:
        """Return the meaning of the columns of a table."""
        columns = resolve_any_columns(names, self.faults)
        self.extra["column"] = len(columns.extra), columns.extra_names
        self.expect(len(columns.dimensions))
        return columns

    def expect(self, columns: int) -> None:
        """Make room for rows of this width.

        Raises:
            ParticipantError: If they are too wide.
        """
        width = self._width or columns
        if columns > width:
            raise ParticipantError(
                f"The embeddings have {count_of(columns, 'dimension')}, but the configuration says embedding_dim: {width}.",
                cure="Correct embedding_dim, or remove it from the configuration.",
                code="standalone.too_wide",
            )
        self.dim = columns
        self.matrix = np.zeros((len(self.ids), width), dtype=np.float32)

    def embeddings(self) -> LenientEmbeddings:
        """Return what was read.

        Raises:
            ParticipantError: If its scores would mean nothing.
        """
        faults = self.faults
        for row in self.without_values:
            self.first_seen[row] = 0
        present = np.flatnonzero(self.first_seen)
        if faults.counts.keys() & REFUSED:
            raise faults.verdict(REFUSED)
        if self.without_values and not len(present):
            raise faults.verdict({"rows.no_values"})
        if not len(present):
            form = differing_form(self.stranger_examples, self.ids)
            differs = f": it has {form[1][0]}, so {form[0]}" if form else ""
            raise ParticipantError(
                f"No id is in a label file{differs}.",
                cure="Check the column id. The label files must use the same ids.",
                code="standalone.no_ids",
            )
        matrix = self.matrix if len(present) == len(self.ids) else self.matrix[present]
        zeros = [code for code in ZEROS if code in faults.counts]
        if sum(faults.counts[code] for code in zeros) == len(present) * self.dim:
            raise faults.verdict()  # no cell is a number
        if len(present) > 1 and has_equal_rows(matrix):
            faults.add("values.constant")
            raise faults.verdict({"values.constant"})
        warnings = [
            f"{faults.sentence(code)}. Scored as 0, before the embeddings are standardized." for code in zeros
        ]
        warnings.extend(f"{faults.sentence(code)}. Left out." for code in LEFT_OUT if code in faults.counts)
        warnings.extend(f"{note[0].upper()}{note[1:]}." for note in self.notes_on_table())
        if missing := len(self.ids) - len(present):
            warnings.append(
                f"{count_of(missing, 'labeled id has', 'labeled ids have')} no embedding; some tasks are scored on fewer samples."
            )
        if self.dim < matrix.shape[1]:
            warnings.append(
                f"The embeddings have {count_of(self.dim, 'dimension')} and are padded with zeros to {matrix.shape[1]:,}."
            )
        ids = tuple(self.ids[row] for row in present)
        return LenientEmbeddings(ids=ids, matrix=matrix, warnings=tuple(warnings))
