"""Read NPZ: the arrays ``ids`` and ``embeddings`` of ``numpy.savez``, without pickle; the shape is checked before any value is read."""

from __future__ import annotations

import re
import sys
import zipfile
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.archives import Capped, Readable, open_directory, open_member
from scoring.inputs.faults import Faults, shown
from scoring.inputs.grid import Cells, judge_cells, narrow, place_cells
from scoring.inputs.matrix_builder import SubmissionMatrixBuilder, most_rows

BLOCK_BYTES = 4 << 20
LONGEST_ID = 4096  # bytes of an array's item, which are 1,024 characters
ID_BYTES = 512 << 20
HEADER_BYTES = 4096
HEADER = re.compile(
    rb"\s*\{\s*'descr'\s*:\s*'([<>|=]?[A-Za-z][0-9]{0,9})'\s*,"
    rb"\s*'fortran_order'\s*:\s*(True|False)\s*,"
    rb"\s*'shape'\s*:\s*\(([0-9L, ]{0,80})\)\s*,?\s*\}\s*"
)


@dataclass(frozen=True, kw_only=True)
class Header:
    """The header of an array."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[np.generic]


def read_npz(
    file: BinaryIO,
    builder: SubmissionMatrixBuilder,
    *,
    max_expanded_bytes: int,
) -> None:
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
    if any(len(found) != 1 for found in named.values()):
        listed = ", ".join(shown(member.filename) for member in members[:3])
        raise faults.fatal("npz.arrays", f"it holds {listed or 'nothing'}")
    others = [member.filename for member in members if member not in chain(*named.values())]
    builder.extra_arrays = len(others)
    builder.extra_names = tuple(shown(name.removesuffix(".npy")) for name in others[:3])

    def opened(name: str, limit: int) -> Capped:
        member: zipfile.ZipInfo = named[name][0]
        return Capped(open_member(archive, member, faults), file, faults, max_expanded_bytes=limit)

    identifiers = _read_ids(opened("ids", min(max_expanded_bytes, ID_BYTES)), len(builder.ids), faults)
    _read_embeddings(opened("embeddings", max_expanded_bytes), identifiers, builder)


def _read_ids(source: Capped, public: int, faults: Faults) -> list[str]:
    header = _read_header(source, "ids", faults)
    if len(header.shape) != 1:
        raise faults.fatal("npz.shape", f"ids has {len(header.shape)} dimensions instead of 1")
    if header.dtype.kind not in "US":
        raise faults.fatal("columns.type", f"ids holds {shown(header.dtype.name)}")
    count, width = header.shape[0], header.dtype.itemsize
    if count > most_rows(public) or width > LONGEST_ID or count * width > ID_BYTES:
        raise faults.fatal("rows.too_many", f"ids has {count:,} entries of {width:,} bytes")
    data = _exactly(source, count * width, "ids", faults)
    _at_end(source, "ids", faults)
    if width == 0:
        return [""] * count
    if header.dtype.kind == "U":
        points = np.frombuffer(data, dtype=np.dtype("u4").newbyteorder(header.dtype.byteorder))
        if points.max(initial=0) > sys.maxunicode:  # numpy would make an invalid str of it
            raise faults.fatal("file.encoding", "an id is not text")
    try:
        written = np.frombuffer(data, dtype=header.dtype).tolist()
        return [name.decode() if isinstance(name, bytes) else str(name) for name in written]
    except (UnicodeDecodeError, ValueError):
        raise faults.fatal("file.encoding", "an id is not text") from None


def _read_embeddings(source: Capped, identifiers: list[str], builder: SubmissionMatrixBuilder) -> None:
    faults = builder.faults
    header = _read_header(source, "embeddings", faults)
    if header.dtype.kind not in "fiu" or header.dtype.itemsize > 8:
        raise faults.fatal("columns.type", f"embeddings holds {shown(header.dtype.name)}")
    if len(header.shape) != 2 or header.shape[0] != len(identifiers):
        shape = " x ".join(f"{length:,}" for length in header.shape) or "no dimension"
        raise faults.fatal("npz.shape", f"embeddings is {shape}, ids has {len(identifiers):,} entries")
    columns = header.shape[1]
    if columns != builder.dim:
        raise faults.fatal("columns.dimension", f"found {columns:,}, expected {builder.dim:,}")
    if header.column_major:
        _read_columns(source, header, identifiers, builder)
    else:
        _read_rows(source, header, identifiers, builder)
    _at_end(source, "embeddings", faults)


def _read_rows(
    source: Readable, header: Header, identifiers: list[str], builder: SubmissionMatrixBuilder
) -> None:
    width = builder.dim * header.dtype.itemsize
    step = max(1, BLOCK_BYTES // width)
    for first in range(0, len(identifiers), step):
        names = identifiers[first : first + step]
        data = _exactly(source, len(names) * width, "embeddings", builder.faults)
        block = np.frombuffer(data, dtype=header.dtype).reshape(len(names), builder.dim)
        place_cells(builder, _cells(names, block, first_row=first + 1, first_column=0))


def _read_columns(
    source: Readable, header: Header, identifiers: list[str], builder: SubmissionMatrixBuilder
) -> None:
    """Read an array that was written column by column, as pandas does."""
    targets = builder.claim(identifiers, range(1, len(identifiers) + 1))
    height = len(identifiers) * header.dtype.itemsize
    step = max(1, BLOCK_BYTES // max(1, height))
    for first in range(0, builder.dim, step):
        last = min(builder.dim, first + step)
        data = _exactly(source, (last - first) * height, "embeddings", builder.faults)
        block = np.frombuffer(data, dtype=header.dtype).reshape((len(identifiers), last - first), order="F")
        cells = _cells(identifiers, block, first_row=1, first_column=first)
        judge_cells(builder, cells)
        builder.assign(targets, slice(first, last), cells.values)


def _cells(names: list[str], block: NDArray[np.generic], *, first_row: int, first_column: int) -> Cells:
    values = narrow(block)
    too_large = np.isinf(values) & np.isfinite(block.astype(np.float64)) if block.dtype.itemsize > 4 else None
    return Cells(
        identifiers=names, values=values, first_row=first_row, first_column=first_column, too_large=too_large
    )


def _read_header(source: Readable, name: str, faults: Faults) -> Header:
    """Parse an array's header with a regular expression; numpy's own reader would evaluate it as a Python literal."""
    start = _exactly(source, 8, name, faults)
    width = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}.get(start[6:])
    if start[:6] != b"\x93NUMPY" or width is None:
        raise faults.fatal("npz.damaged", f"the array {name} has no readable header")
    length = int.from_bytes(_exactly(source, width, name, faults), "little")
    if length > HEADER_BYTES:
        raise faults.fatal("npz.damaged", f"the array {name} has no readable header")
    match = HEADER.fullmatch(_exactly(source, length, name, faults))
    if match is None:
        raise faults.fatal("columns.type", f"{name} is not a plain array of text or numbers")
    described, order, lengths = (group.decode() for group in match.groups())
    if "O" in described:
        raise faults.fatal("npz.pickle", f"the array {name}")
    try:
        dtype = np.dtype(described)
        shape = tuple(int(part.rstrip("L")) for part in lengths.replace(" ", "").split(",") if part)
    except (TypeError, ValueError):
        raise faults.fatal("npz.damaged", f"the array {name} has no readable header") from None
    return Header(shape=shape, column_major=order == "True", dtype=dtype)


def _exactly(source: Readable, size: int, name: str, faults: Faults) -> bytes:
    pieces = []
    left = size
    while left:
        piece = source.read(min(left, BLOCK_BYTES))
        if not piece:
            raise faults.fatal("npz.damaged", f"the array {name} is shorter than its header says")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _at_end(source: Readable, name: str, faults: Faults) -> None:
    if source.read(1):
        raise faults.fatal("npz.damaged", f"the array {name} is longer than its header says")
