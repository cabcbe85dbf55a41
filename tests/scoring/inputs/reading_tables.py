"""Tables of embeddings in the forms that a submission may have."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.errors import ParticipantError
from scoring.inputs.embeddings import Embeddings, content_hash
from scoring.inputs.tables import read_submission
from scoring.printable import printable

CEILING = 64_000_000  # bytes a test file may expand to
IDS = tuple(f"s{number:03d}" for number in range(12))
DIM = 4


def table(ids: Sequence[str] = IDS, dim: int = DIM, seed: int = 0) -> NDArray[np.float32]:
    """Return embeddings of the ids."""
    return np.random.default_rng(seed).standard_normal((len(ids), dim)).astype(np.float32)


def embeddings_of(ids: Sequence[str], matrix: NDArray[np.floating]) -> Embeddings:
    """Return the canonical form of rows in any order, for comparison with what was read."""
    names = tuple(sorted(ids, key=str.encode))
    rows = matrix[[ids.index(name) for name in names]].astype(np.float32) + np.float32(0.0)
    return Embeddings(ids=names, matrix=rows, content_hash=content_hash(names, rows))


def as_csv(
    ids: Sequence[str],
    matrix: NDArray[np.floating],
    *,
    names: Sequence[str] | None = None,
    newline: str = "\n",
    quote: bool = False,
    final: bool = True,
    mark: bool = False,
) -> bytes:
    """Write a plain table as CSV."""

    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if quote or set(text) & set(',"\n\r') else text

    header = ["id", *(names or [str(column) for column in range(matrix.shape[1])])]
    lines = [",".join(cell(name) for name in header)]
    lines += [
        ",".join([cell(name), *(cell(repr(float(value))) for value in row)])
        for name, row in zip(ids, matrix, strict=True)
    ]
    text = newline.join(lines) + (newline if final else "")
    return ("\ufeff" if mark else "").encode() + text.encode()


def good(ids: Sequence[str] = IDS, dim: int = DIM) -> bytes:
    """Return a valid CSV file."""
    return as_csv(ids, table(ids, dim))


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a CSV file, for :func:`from_lines`."""
    return data.decode().splitlines()


def from_lines(lines: Sequence[str]) -> bytes:
    """Return a CSV file of lines."""
    return ("\n".join(lines) + "\n").encode()


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def gzipped(data: bytes) -> bytes:
    """Return a gzip file, the same every time."""
    return gzip.compress(data, 6, mtime=0)


def as_npz(**arrays: NDArray[np.generic]) -> bytes:
    """Return an NPZ file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def as_parquet(columns: dict[str, object], **options: object) -> bytes:
    """Return a Parquet file of the columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


def read(
    data: bytes, folder: Path, ids: Sequence[str] = IDS, dim: int = DIM, ceiling: int = CEILING
) -> Embeddings:
    """Read bytes as a submission with a neutral file name."""
    path = folder / "input"
    path.write_bytes(data)
    return read_submission(path, ids, dim, max_expanded_bytes=ceiling)


def refused(
    data: bytes, folder: Path, ids: Sequence[str] = IDS, dim: int = DIM, ceiling: int = CEILING
) -> ParticipantError:
    """Read bytes that must be refused, and return the error after :func:`check_manners`."""
    try:
        read(data, folder, ids, dim, ceiling)
    except ParticipantError as error:
        check_manners(error)
        return error
    raise AssertionError("the file was accepted")


def check_manners(error: ParticipantError) -> None:
    """Check that a message is safe in a terminal and short: one fault per line, at most 2,000 characters."""
    message = error.message
    assert 0 < len(message) <= 2000
    first, *others = message.split("\n")
    assert all(printable(line) == line for line in (first, *others))
    assert all(line.startswith("- ") for line in others)
    assert len(others) != 1
    assert error.code.partition(".")[0] in {
        "file",
        "archive",
        "parquet",
        "npz",
        "columns",
        "rows",
        "cells",
        "values",
    }
    assert "Traceback" not in message
    assert "/tmp" not in message
