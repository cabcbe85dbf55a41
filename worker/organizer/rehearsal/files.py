"""Embedding files as participants write them, intact or damaged."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def csv_of(ids: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    """Write embeddings as participants do: a header, then a line per id with all digits of its numbers."""
    import pyarrow
    from pyarrow.csv import WriteOptions, write_csv

    header = [str(column) for column in range(matrix.shape[1])]
    numbers = pyarrow.BufferOutputStream()
    write_csv(pyarrow.table(list(matrix.T), names=header), numbers, WriteOptions(include_header=False))
    # pyarrow would quote every id, but participants quote only those that need it
    names = io.StringIO()
    csv.writer(names, lineterminator="\n").writerows([name] for name in ids)
    cells = numbers.getvalue().to_pybytes().splitlines()
    lines = map(b",".join, zip(names.getvalue().encode().splitlines(), cells, strict=True))
    return b"\n".join([",".join(["id", *header]).encode(), *lines, b""])


def spoilt(content: bytes, *, nan: Sequence[tuple[int, int]], missing: int) -> bytes:
    """Damage a file: NaN in some cells (line and column), and the last ids left out."""
    lines = [line.split(b",") for line in content.splitlines()]
    for line, column in nan:
        lines[line][column] = b"nan"
    return b"\n".join([*map(b",".join, lines[:-missing]), b""])
