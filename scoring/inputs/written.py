"""Write tables of embeddings: a corrected submission, and an empty template."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.embeddings import Embeddings


def write_embeddings(path: Path, embeddings: Embeddings) -> None:
    """Write embeddings as CSV: one row per id in their order, each number with the fewest digits that give the same float32.

    Raises:
        OrganizerError: If the file exists, or cannot be written.
    """
    _write(path, embeddings.matrix.shape[1], embeddings.ids, embeddings.matrix)


def write_template(path: Path, ids: Sequence[str], embedding_dim: int) -> None:
    """Write an empty table for a submission: all columns, the ids in their order, and empty cells.

    Raises:
        OrganizerError: As :func:`write_embeddings`.
    """
    _write(path, embedding_dim, ids, None)


def _write(path: Path, columns: int, ids: Sequence[str], matrix: NDArray[np.float32] | None) -> None:
    empty = [""] * columns
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["id", *range(columns)])
            for row, identifier in enumerate(ids):
                writer.writerow(
                    [identifier, *(empty if matrix is None else matrix[row].astype(str).tolist())]
                )
    except FileExistsError:
        raise OrganizerError(
            f"{path} exists already.",
            cure="Choose another file name, or remove the file.",
            code="file.exists",
        ) from None
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be written: {error.strerror}.",
            cure="Choose another place, or check its permissions.",
            code="file.unwritable",
        ) from error
