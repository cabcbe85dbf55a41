"""Check the values of binary tables (NPZ and Parquet) block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.faults import shown
from scoring.inputs.matrix_builder import SubmissionMatrixBuilder


def narrow(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """Convert numbers of any type to float32; numbers that are too large become infinite."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """A rectangle of values from the file.

    Attributes:
        identifiers: Ids of its rows, as written.
        values: float32, rows x columns.
        first_row: Number of its first row, from 1.
        first_column: Dimension of its first column.
        empty: Which cells have no value; None if all of them have one.
        too_large: Which cells were finite before the conversion to float32 and are infinite now; None if there can be none.
    """

    identifiers: Sequence[str]
    values: NDArray[np.float32]
    first_row: int
    first_column: int = 0
    empty: NDArray[np.bool_] | None = None
    too_large: NDArray[np.bool_] | None = None


def place_cells(builder: SubmissionMatrixBuilder, cells: Cells) -> None:
    """Check whole rows and pass them to the builder."""
    judge_cells(builder, cells)
    numbers = range(cells.first_row, cells.first_row + len(cells.identifiers))
    builder.place(cells.identifiers, cells.values, numbers)


def judge_cells(builder: SubmissionMatrixBuilder, cells: Cells) -> None:
    """Add a fault for each value that is not a finite number, in rows of public ids."""
    bad = ~np.isfinite(cells.values)
    if cells.empty is not None:
        bad |= cells.empty
    if not bad.any():
        return
    count = len(cells.identifiers)
    asked_for = np.fromiter((builder.knows(name) for name in cells.identifiers), dtype=np.bool_, count=count)
    bad &= asked_for[:, np.newaxis]
    kinds = (
        ("cells.empty", cells.empty),
        ("cells.range", cells.too_large),
        ("cells.nan", np.isnan(cells.values)),
        ("cells.infinite", np.isinf(cells.values)),
    )
    for code, mask in kinds:
        if mask is None:
            continue
        found = bad & mask
        bad &= ~mask
        number = int(np.count_nonzero(found))
        if number:
            builder.faults.add(
                code, *(_place(cells, row, column) for row, column in np.argwhere(found)[:3]), count=number
            )


def _place(cells: Cells, row: int, column: int) -> str:
    identifier = shown(cells.identifiers[row])
    return f"row {cells.first_row + row} (id {identifier}), column {cells.first_column + column}"
