"""Read NPZ: the arrays ``ids`` and ``embeddings`` of ``numpy.savez``, without pickle; the shape is checked before any value is read."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import numpy as np

from scoring.inputs.archives import Capped, open_directory, open_member
from scoring.inputs.faults import Faults, shown
from scoring.inputs.matrix_builder import MatrixBuilder

BLOCK_BYTES = 4 << 20
LONGEST_ID = 4096  # bytes of an array's item, which are 1,024 characters
ID_BYTES = 512 << 20
LONGEST_HEADER = 1 << 16
HEADER = re.compile(
    rb"\s*\{\s*'descr'\s*:\s*'([<>|=]?[A-Za-z][0-9]{0,9})'\s*,"
    rb"\s*'fortran_order'\s*:\s*(True|False)\s*,"
    rb"\s*'shape'\s*:\s*\(([0-9, ]{0,80})\)\s*,?\s*\}\s*"
)


@dataclass(frozen=True, kw_only=True)
class Array:
    """An array in an NPZ file, whose header was read.

    Attributes:
        name: Its name.
        source: Its values.
        shape: Its shape.
        column_major: Whether it was written column by column, as pandas does.
        dtype: Type of its values.
    """

    name: str
    source: Capped
    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[np.generic]

    def read(self, items: int, faults: Faults) -> bytes:
        """Return the bytes of so many values.

        Raises:
            Unreadable: If there are not so many.
        """
        size = items * self.dtype.itemsize
        data = self.source.read(size)
        if len(data) < size:
            raise faults.fatal("npz.damaged", f"the array {self.name} is shorter than its header says")
        return data

    def end(self, faults: Faults) -> None:
        """Check that nothing follows.

        Raises:
            Unreadable: If something does.
        """
        if self.source.read(1):
            raise faults.fatal("npz.damaged", f"the array {self.name} is longer than its header says")


def read_npz(file: BinaryIO, builder: MatrixBuilder, *, max_expanded_bytes: int) -> None:
    """Read an NPZ file into the builder.

    Raises:
        Unreadable: If reading cannot go on.
    """
    faults = builder.faults
    archive = open_directory(file, faults)
    members = archive.infolist()
    named = {
        name: [member for member in members if member.filename == f"{name}.npy"]
        for name in ("ids", "embeddings")
    }
    if any(len(members_of_name) != 1 for members_of_name in named.values()):
        listed = ", ".join(shown(member.filename) for member in members[:3])
        raise faults.fatal("npz.arrays", f"it holds {listed or 'nothing'}")
    others = [member.filename for member in members if member not in chain(*named.values())]
    builder.extra["array"] = len(others), tuple(shown(name.removesuffix(".npy")) for name in others[:3])

    def array(name: str, limit: int) -> Array:
        source = Capped(open_member(archive, named[name][0], faults), file, faults, max_expanded_bytes=limit)
        return _with_header(name, source, faults)

    identifiers = _read_ids(array("ids", min(max_expanded_bytes, ID_BYTES)), builder)
    _read_embeddings(array("embeddings", max_expanded_bytes), identifiers, builder)


def _with_header(name: str, source: Capped, faults: Faults) -> Array:
    """Parse an array's header with a regular expression; numpy's own reader would evaluate it as a Python literal."""
    start = source.read(8)
    length = int.from_bytes(source.read(2 if start[6:7] == b"\1" else 4), "little")
    match = HEADER.fullmatch(source.read(min(length, LONGEST_HEADER)))
    if match is None or start[:6] != b"\x93NUMPY":
        raise faults.fatal(
            "npz.type" if start[:6] == b"\x93NUMPY" else "npz.damaged",
            f"{name} is not a plain array of text or numbers",
        )
    described, order, lengths = (group.decode() for group in match.groups())
    if "O" in described:
        raise faults.fatal("npz.pickle", f"the array {name}")
    try:
        dtype = np.dtype(described)
        shape = tuple(int(part) for part in lengths.split(",") if part.strip())
    except TypeError:
        raise faults.fatal("npz.type", f"{name} holds {shown(described)}") from None
    except ValueError:
        raise faults.fatal("npz.damaged", f"the array {name} has no readable header") from None
    return Array(name=name, source=source, shape=shape, column_major=order == "True", dtype=dtype)


def _read_ids(array: Array, builder: MatrixBuilder) -> list[str]:
    faults = builder.faults
    if len(array.shape) != 1:
        raise faults.fatal("npz.shape", f"ids has {len(array.shape)} dimensions instead of 1")
    if array.dtype.kind not in "USiu":
        raise faults.fatal("npz.type", f"ids holds {shown(array.dtype.name)}")
    count, width = array.shape[0], array.dtype.itemsize
    if count > builder.most_rows or width > LONGEST_ID or count * width > ID_BYTES:
        raise faults.fatal("rows.too_many", f"ids has {count:,} entries of {width:,} bytes")
    data = array.read(count, faults)
    array.end(faults)
    try:
        if array.dtype.kind == "U":
            points = np.frombuffer(data, dtype=np.dtype("u4").newbyteorder(array.dtype.byteorder))
            if points.max(initial=0) > sys.maxunicode:  # numpy would make an invalid str of it
                raise faults.fatal("npz.type", "ids holds bytes that are not UTF-8")
        written = np.frombuffer(data, dtype=array.dtype).tolist() if width else [""] * count
        return [name.decode() if isinstance(name, bytes) else str(name) for name in written]
    except (UnicodeDecodeError, ValueError):
        raise faults.fatal("npz.type", "ids holds bytes that are not UTF-8") from None


def _read_embeddings(array: Array, identifiers: list[str], builder: MatrixBuilder) -> None:
    """Read some rows at a time, or some columns if the array was written column by column."""
    faults, rows = builder.faults, len(identifiers)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        unnamed = ", as bfloat16 is saved" if array.dtype == np.dtype("V2") else ""
        raise faults.fatal("npz.type", f"embeddings holds {shown(array.dtype.name)}{unnamed}")
    if len(array.shape) != 2 or array.shape[0] != rows or not array.shape[1]:
        shape = " x ".join(f"{length:,}" for length in array.shape) or "no dimension"
        turned = "; it is transposed" if len(array.shape) == 2 and array.shape[1] == rows else ""
        raise faults.fatal("npz.shape", f"embeddings is {shape}, ids has {rows:,} entries{turned}")
    columns = array.shape[1]
    builder.expect(columns)
    numbers = range(1, rows + 1)
    targets = builder.claim(identifiers, numbers)
    lines, length = (columns, rows) if array.column_major else (rows, columns)
    step = max(1, BLOCK_BYTES // max(1, length * array.dtype.itemsize))
    for first in range(0, lines, step):
        count = min(step, lines - first)
        block = np.frombuffer(array.read(count * length, faults), dtype=array.dtype).reshape(count, length)
        if array.column_major:
            cells = builder.judge(block.T, identifiers, numbers, first_column=first)
            builder.assign(targets, first, cells)
        else:
            part = slice(first, first + count)
            cells = builder.judge(block, identifiers[part], numbers[part])
            builder.assign(targets[part], 0, cells)
    array.end(faults)
