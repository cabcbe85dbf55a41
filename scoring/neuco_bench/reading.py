"""The lenient reader: read embeddings as NeuCo-Bench does, with a warning for everything that a challenge would refuse.

Cells that are not numbers become 0, samples without an embedding drop out of their tasks, and repeated ids stay. All of this happens before
the standardization, as in NeuCo-Bench.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.in_order import read_in_order
from scoring.printable import count_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class LenientEmbeddings:
    """Embeddings of the ids that any label file names.

    Attributes:
        ids: One per row, in the order of the file; an id may occur more than once.
        matrix: float32, n x N, finite, not standardized.
        warnings: What a challenge would have refused.
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
        ParticipantError: If the file is not a table of embeddings, is wider than ``embedding_dim``, or holds infinite values.
    """
    left_out, asked_for = frozenset(exclude), frozenset(wanted)
    expected = asked_for - left_out
    kept, matrix, blanks = _rows(path, expected)
    warnings = []
    if not kept:
        raise ParticipantError(
            f"No id in {path.name} is in a label file.",
            cure="Check the column id. The label files must use the same ids.",
            code="standalone.no_ids",
        )
    if not np.isfinite(matrix).all():
        raise ParticipantError(
            f"{path.name} contains infinite values, or values too large for float32.",
            cure="Check how the embeddings were computed. No probe can be trained on such values.",
            code="standalone.infinite",
        )
    if blanks:
        warnings.append(
            f"{count_of(blanks, 'cell without a number counts', 'cells without a number count')} as 0 (before the embeddings are"
            " standardized)."
        )
    missing = len(expected) - len(set(kept))
    if missing:
        warnings.append(
            f"{count_of(missing, 'labeled id has', 'labeled ids have')} no embedding; some tasks are scored on fewer samples."
        )
    repeated = len(kept) - len(set(kept))
    if repeated:
        warnings.append(
            f"{count_of(repeated, 'row repeats', 'rows repeat')} an id; a sample in both parts of a split leaks."
        )
    matrix = _padded(matrix, embedding_dim, warnings)
    return LenientEmbeddings(ids=tuple(kept), matrix=matrix, warnings=tuple(warnings))


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


def _padded(
    matrix: NDArray[np.float32], embedding_dim: int | None, warnings: list[str]
) -> NDArray[np.float32]:
    found = matrix.shape[1]
    if embedding_dim is None or found == embedding_dim:
        return matrix
    if found > embedding_dim:
        raise ParticipantError(
            f"The embeddings have {count_of(found, 'dimension')}, but the configuration says embedding_dim: {embedding_dim}.",
            cure="Correct embedding_dim, or remove it from the configuration.",
            code="standalone.too_wide",
        )
    warnings.append(
        f"The embeddings have {count_of(found, 'dimension')} and are padded with zeros to {embedding_dim:,}."
    )
    return np.pad(matrix, ((0, 0), (0, embedding_dim - found)))


def _rows(path: Path, expected: frozenset[str]) -> tuple[list[str], NDArray[np.float32], int]:
    """Return ids and values of the expected rows, in the order of the file, and the number of cells that were not numbers and became 0."""
    try:
        faultless = read_in_order(path, lambda written: without_suffix(written) in expected)
    except OSError:
        faultless = None  # _table raises the error
    if faultless is not None:
        written, matrix = faultless
        return [without_suffix(identifier) for identifier in written], matrix, 0
    written, values, unusable = _table(path)
    ids = [without_suffix(identifier) for identifier in written]
    keep = np.array([identifier in expected for identifier in ids], dtype=np.bool_)
    kept = [identifier for identifier, chosen in zip(ids, keep, strict=True) if chosen]
    return kept, values[keep], int(np.count_nonzero(unusable[keep])) if unusable is not None else 0


def _table(path: Path) -> tuple[list[str], NDArray[np.float32], NDArray[np.bool_] | None]:
    """Return ids, values (0 for cells that are not numbers) and a mask of these cells (None if there are none)."""
    import pandas as pd

    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                ids, values = archive["ids"], archive["embeddings"]
            if values.ndim != 2 or ids.shape != values.shape[:1]:
                raise ValueError("ids and embeddings do not have a row each")
            frame = pd.DataFrame(values).assign(id=ids.astype(str))
        elif path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, dtype={"id": str}, skipinitialspace=True, low_memory=False)
    except OSError as error:
        raise ParticipantError(
            f"{path} cannot be read: {error.strerror or error}.",
            cure="Check --submission_file.",
            code="standalone.unreadable",
        ) from error
    except (ValueError, KeyError, pd.errors.ParserError) as error:
        raise ParticipantError(
            f"{path.name} is not a table of embeddings: {str(error)[:200]}.",
            cure="Save it as CSV with the column id and one column per dimension.",
            code="standalone.no_table",
        ) from error
    if "id" not in frame.columns:
        raise ParticipantError(
            f"{path.name} has no column id.",
            cure="Rename the column with the ids to id.",
            code="standalone.no_id",
        )
    ids = frame["id"].astype(str).tolist()
    return ids, *_values(frame, _dimensions([str(name) for name in frame.columns], path))


def _dimensions(names: Sequence[str], path: Path) -> list[int]:
    """Return the positions of the dimensions: the columns named by digits, in numeric order, or if there are none, all but the id."""
    digits = [position for position, name in enumerate(names) if name.isdecimal()]
    chosen = sorted(digits, key=lambda position: int(names[position])) or [
        position for position, name in enumerate(names) if name != "id"
    ]
    if not chosen:
        raise ParticipantError(
            f"{path.name} has no columns besides id.",
            cure="Add one column for each dimension.",
            code="standalone.no_columns",
        )
    return chosen


def _values(
    frame: pd.DataFrame, columns: Sequence[int]
) -> tuple[NDArray[np.float32], NDArray[np.bool_] | None]:
    import pandas as pd

    table = frame.iloc[:, list(columns)]
    texts = [name for name, kind in zip(table.columns, table.dtypes, strict=True) if kind.kind not in "fiub"]
    if texts:
        table = table.assign(**{name: pd.to_numeric(table[name], errors="coerce") for name in texts})
    with np.errstate(over="ignore"):
        values = table.to_numpy(dtype=np.float64).astype(np.float32)
    unusable = np.isnan(values)
    if not unusable.any():
        return values, None
    values[unusable] = 0.0
    return values, unusable
